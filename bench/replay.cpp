// Host cost of replaying a compiled step: prints µs a replay and ns an instruction.
//
//   replay [nodes]     (default 1000)
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "tessera/tessera.h"

using namespace tessera;

int main(int argc, char** argv) {
  init();
  const int nodes = argc > 1 ? std::atoi(argv[1]) : 1000;
  std::printf("%-34s %8s %8s %12s %14s\n", "step", "nodes", "kernels", "us a replay",
              "ns a kernel");
  // Elements so few that nearly all the time is the host's. The first step fuses as usual; in the
  // second every other node is a product, which keeps kernels apart.
  for (const bool products : {false, true}) {
    const Var w(ones({2, 2}), "w");
    auto step = compile([&](const Tensor& x) {
      Tensor y = w;
      for (int i = 0; i < nodes; ++i) y = products && i % 2 ? matmul(y, x) : tanh(y);
      w.assign(y);
    });
    const Tensor x = full({2, 2}, 0.5).eval();
    for (int i = 0; i < 100; ++i) step(x);
    double best = 1e9;
    for (int repeat = 0; repeat < 30; ++repeat) {
      const auto begin = std::chrono::steady_clock::now();
      constexpr int kRuns = 100;
      for (int i = 0; i < kRuns; ++i) step(x);
      const std::chrono::duration<double, std::micro> time =
          std::chrono::steady_clock::now() - begin;
      best = std::min(best, time.count() / kRuns);
    }
    const Report& report = step.program().report;
    std::printf("%-34s %8d %8d %12.2f %14.1f\n",
                products ? "tanh and 2x2 products" : "tanh chain, fused", report.nodes,
                report.kernels, best, 1e3 * best / report.kernels);
  }
  return 0;
}
