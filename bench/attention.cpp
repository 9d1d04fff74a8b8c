// attention forward and backward beside its definition in plain ops and this machine's rate for
// products: prints ms and GFLOP/s. Of causal attention only what is seen counts.
//
//   attention [runs]     (default 30; the fastest counts)
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>

#include "tessera/graph/attention.h"
#include "tessera/tensor/eval.h"
#include "tessera/tessera.h"

using namespace tessera;

namespace {

struct Row {
  int64_t b, h, g, t, d;
  bool causal;
  DType dtype;
  bool split = false;  // q, k and v side by side in one tensor, as a GPT's product leaves them
};

constexpr Row kRows[] = {
    {8, 6, 6, 256, 64, true, DType::f32},   {8, 6, 6, 256, 64, true, DType::f32, true},
    {8, 6, 6, 256, 64, false, DType::f32},  {1, 8, 8, 1024, 64, true, DType::f32},
    {1, 8, 2, 1024, 128, true, DType::f32}, {1, 1, 1, 4096, 64, true, DType::f32},
    {64, 6, 6, 64, 64, true, DType::f32},   {8, 6, 6, 256, 64, true, DType::bf16},
    {8, 6, 6, 256, 64, true, DType::f64},
};

double fastest(int runs, const std::function<void()>& work) {
  work();
  double best = 1e9;
  for (int i = 0; i < runs; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
    best = std::min(best, time.count());
  }
  return best;
}

// Seconds of forward and backward, each a compiled step over given operands.
struct Times {
  double forward, backward;
};

Times measure(const Row& row, int runs, bool kernel_ops) {
  CompileOptions options;
  options.kernel_ops = kernel_ops;
  const CompileOptions previous = set_compile_options(options);
  const Random random(1);
  const auto draw = [&](const Shape& shape) {
    return cast(random.uniform(shape, -1, 1), row.dtype).eval().detach();
  };
  const auto heads = [&](int64_t count) { return draw({row.b, count, row.t, row.d}); };
  Tensor q = heads(row.h), k = heads(row.g), v = heads(row.g), g = heads(row.h);
  if (row.split) {
    const Tensor all = draw({row.b, row.t, row.h + 2 * row.g, row.d});
    const auto part = [&](int64_t first, int64_t count) {
      return permute(slice(all, 2, first, first + count), {0, 2, 1, 3});
    };
    q = part(0, row.h), k = part(row.h, row.g), v = part(row.h + row.g, row.g);
    g = permute(draw({row.b, row.t, row.h, row.d}), {0, 2, 1, 3});
  }
  // Read where they are: what is passed to a compiled step is copied.
  AttentionInputs in;
  in.q = q.value();
  in.k = k.value();
  in.v = v.value();
  in.causal = row.causal;
  in.scale = 0.125;
  const auto tensors = [](const std::vector<Value>& values) {
    return std::vector<Tensor>(values.begin(), values.end());
  };
  const Compiled forward([&](std::span<const Tensor>, std::span<const int64_t>) {
    return tensors(graph::attention(in));
  });
  const std::vector<Tensor> y = forward({});
  const Compiled backward([&](std::span<const Tensor>, std::span<const int64_t>) {
    return tensors(graph::attention_backward(g.value(), in, y[0].value(), y[1].value()));
  });
  const Times times = {fastest(runs, [&] { forward({}); }), fastest(runs, [&] { backward({}); })};
  set_compile_options(previous);
  return times;
}

void print(const Row& row, int runs) {
  const Times kernel = measure(row, runs, true), plain = measure(row, 3, false);
  const double scores = double(row.b * row.h * row.t) * double(row.t) / (row.causal ? 2 : 1);
  const double unit = scores * double(row.d) * 1e-9;
  const std::string name = cat("B", row.b, " H", row.h, " G", row.g, " T", row.t, " D", row.d, " ",
                               row.dtype, row.causal ? " causal" : "", row.split ? " split" : "");
  std::printf("%-38s %9.3f %7.1f %9.3f %9.3f %7.1f %9.3f %8.1f\n", name.c_str(),
              1e3 * kernel.forward, 4 * unit / kernel.forward, 1e3 * plain.forward,
              1e3 * kernel.backward, 10 * unit / kernel.backward, 1e3 * plain.backward,
              14 * unit / (kernel.forward + kernel.backward));
}

}  // namespace

int main(int argc, char** argv) {
  init();
  const int runs = argc > 1 ? std::atoi(argv[1]) : 30;
  auto product = compile([](const Tensor& a, const Tensor& b) { return matmul(a, b); });
  const Tensor a = ones({1024, 1024}).eval();
  const double time = fastest(runs, [&] { product(a, a); });
  std::printf("matmul 1024 f32: %.1f GFLOP/s\n", 2 * 1.073741824 / time);
  std::printf("%-38s %9s %7s %9s %9s %7s %9s %8s\n", "", "forward", "GFLOP/s", "plain", "backward",
              "GFLOP/s", "plain", "both");
  for (const Row& row : kRows) print(row, runs);
  return 0;
}
