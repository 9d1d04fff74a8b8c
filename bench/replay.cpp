// Host cost of replaying a compiled step: prints µs a replay, ns an instruction, and µs a replay
// while a profile is taken. The bound is 20 µs + 0.3 µs an instruction.
//
//   replay [nodes]     (default 1000)
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

#include "tessera/tessera.h"

using namespace tessera;

namespace {

using Step = CompiledFunction<void, const Tensor&>;

constexpr int kVars = 200;

// Elements so few that nearly all the time is the host's.
const Shape kShape = {2, 2};

double best_micros(const Step& step, const Tensor& x, int repeats) {
  constexpr int kRuns = 100;
  double best = 1e9;
  for (int repeat = 0; repeat < repeats; ++repeat) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < kRuns; ++i) step(x);
    const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - begin;
    best = std::min(best, time.count() / kRuns);
  }
  return best;
}

void measure(const char* name, const std::function<void(const Tensor&)>& function) {
  const Step step = compile_function(function);
  const Tensor x = full(kShape, 0.5).eval();
  for (int i = 0; i < 100; ++i) step(x);
  const double plain = best_micros(step, x, 30);
  const ProfileGuard guard;
  const double profiled = best_micros(step, x, 3);
  const Report& report = step.program().report;
  std::printf("%-34s %8d %8d %12.2f %12.1f %12.2f %12.2f\n", name, report.nodes, report.kernels,
              plain, 1e3 * plain / report.kernels, profiled, 20 + 0.3 * report.kernels);
}

}  // namespace

int main(int argc, char** argv) {
  init();
  const int nodes = argc > 1 ? std::atoi(argv[1]) : 1000;
  std::printf("%-34s %8s %8s %12s %12s %12s %12s\n", "step", "nodes", "kernels", "us a replay",
              "ns a kernel", "us profiled", "us allowed");
  const Var w(ones(kShape), "w");
  measure("tanh chain, fused", [&](const Tensor&) {
    Tensor y = w;
    for (int i = 0; i < nodes; ++i) y = tanh(y);
    w.assign(y);
  });
  // Every other node is a product, which keeps kernels apart.
  measure("tanh and 2x2 products", [&](const Tensor& x) {
    Tensor y = w;
    for (int i = 0; i < nodes; ++i) y = i % 2 ? matmul(y, x) : tanh(y);
    w.assign(y);
  });
  measure("one product", [&](const Tensor& x) { w.assign(matmul(w, x)); });

  std::vector<Var> vars;
  for (int i = 0; i < kVars; ++i) vars.emplace_back(ones(kShape), cat("v", i));
  measure("200 Vars read", [&](const Tensor&) {
    Tensor sum = w;
    for (const Var& var : vars) sum = sum + var;
    w.assign(sum * 1e-3);
  });
  measure("200 Vars read and written", [&](const Tensor& x) {
    for (const Var& var : vars) var.assign(var.value() * x);
  });
  return 0;
}
