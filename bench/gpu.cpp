// Kernels on a GPU, by replay: each line is a program without inputs that is launched many times
// before the device is waited for. bench/peers/gpu.py times the same lines in PyTorch, and
// tools/gpu sets both side by side.
//
//   bench_gpu [--device cuda:0] [--small] [--turns] [PATTERN]    lines whose names contain PATTERN
//
// Prints one JSON object per line: name, microseconds, bytes, flops. With --turns it says when it
// is ready for a line, and does nothing until it reads "time", upon which it measures the line and
// is ready again, or another word, upon which it goes on. --small divides the large
// sizes by 64, to see on any device that every line works. BENCH_MAP_TURNS,
// BENCH_GROUPS_PER_UNIT, BENCH_SPLIT_POINTS and BENCH_CLUSTER_GROUPS (1: none) try other plans of
// generated kernels (backend/gpu/generated_kernel.h), BENCH_LONG_ROWS=0 those of long rows in place
// of kernels of their own.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

#include "tessera/backend/gpu/generated_kernel.h"
#include "tessera/graph/build.h"
#include "tessera/io/json.h"
#include "tessera/runtime/registry.h"
#include "tessera/tensor/eval.h"
#include "tessera/tensor/ops.h"
#include "tessera/tessera.h"

using namespace tessera;

namespace {

struct Options {
  Device device = preferred_device();
  int64_t divide = 1;
  bool takes_turns = false;
  std::string pattern;
};

class Table {
 public:
  explicit Table(Options options) : options_(std::move(options)) {}

  // `make` builds what a program computes, `repeats` times over in one program: each a launch.
  void line(const std::string& name, double bytes, double flops,
            const std::function<std::vector<Tensor>()>& make, int repeats = 1) const {
    if (name.find(options_.pattern) == std::string::npos) return;
    try {
      const std::function<double(int)> time = timed(make, repeats);
      const auto measure = [&](int rounds) {
        std::printf("{\"name\": \"%s\", \"us\": %.3f, \"bytes\": %.0f, \"flops\": %.0f}\n",
                    name.c_str(), time(rounds) / repeats * 1e6, bytes, flops);
      };
      if (!options_.takes_turns) measure(kRounds);
      while (options_.takes_turns && is_asked_for(name)) measure(kRoundsOfATurn);
    } catch (const Error& error) {
      const Json row = Json().set("name", name).set("error", std::string(error.what()));
      std::printf("%s\n", row.dump().c_str());
    }
    std::fflush(stdout);
  }

  int64_t large(int64_t n) const { return n / options_.divide; }

 private:
  static constexpr int kRounds = 7, kRoundsOfATurn = 3;

  static bool is_asked_for(const std::string& name) {
    std::printf("{\"ready\": \"%s\"}\n", name.c_str());
    std::fflush(stdout);
    std::string word;
    return std::getline(std::cin, word) && word == "time";
  }

  // The least of so many rounds, each long enough that the wait at its end does not count. The
  // program is compiled, measured and recorded before.
  std::function<double(int)> timed(const std::function<std::vector<Tensor>()>& make,
                                   int repeats) const {
    const CompileOptions before = set_compile_options({.horizontal = repeats == 1});
    const auto program = compile([make] { return make(); });
    Backend& device = backend(options_.device);
    const auto round = [program, &device](int runs) {
      const auto begin = std::chrono::steady_clock::now();
      for (int i = 0; i < runs; ++i) program();
      device.synchronize({});
      return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    };
    round(6);
    set_compile_options(before);
    const double once = round(1);
    const int runs = std::max(3, int(0.02 / std::max(once, 1e-6)));
    return [round, runs](int rounds) {
      double least = 1e9;
      for (int i = 0; i < rounds; ++i) least = std::min(least, round(runs) / runs);
      return least;
    };
  }

  const Options options_;
};

Tensor made(const Shape& shape, DType dtype) {
  const Tensor x = cast(Random(7).uniform(shape) - 0.5f, dtype);
  x.eval();
  return x;
}

void elementwise(const Table& table) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const int64_t n = table.large(int64_t(1) << 28);
    const double bytes = double(n) * size_of(dtype);
    const std::string suffix = cat("_", name(dtype));
    const Tensor x = made({n}, dtype), y = made({n}, dtype);
    table.line("copy" + suffix, 2 * bytes, 0, [&] { return std::vector{-x}; });
    table.line("add" + suffix, 3 * bytes, 0, [&] { return std::vector{x + y}; });
    table.line("chain" + suffix, 3 * bytes, 0,
               [&] { return std::vector{tanh(x * y + x) * sigmoid(y - x)}; });
    table.line("sum" + suffix, bytes, 0, [&] { return std::vector{sum(x)}; });
  }
  for (const int64_t n : {int64_t(1) << 10, int64_t(1) << 18, int64_t(1) << 20}) {
    const int repeats = n < (1 << 20) ? 50 : 3;  // so many that a cache holds what they touch
    std::vector<Tensor> xs;
    for (int i = 0; i < repeats; ++i) xs.push_back(made({n}, DType::f32));
    const Tensor y = made({n}, DType::f32);
    // Results of a program take turns between two buffers, those of a Var stay where they are.
    std::vector<Var> sums;
    for (const Tensor& x : xs) sums.emplace_back(x);
    table.line(
        cat("add_replayed_", n), 12.0 * double(n), 0,
        [&] {
          for (int i = 0; i < repeats; ++i) sums[size_t(i)].assign(xs[size_t(i)] + y);
          return std::vector<Tensor>{};
        },
        repeats);
  }
}

void rows(const Table& table) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (const int64_t columns : {768, 1024, 4096, 16384, 32768, 50257, 131072}) {
      const int64_t count = table.large(int64_t(1) << 27) / columns;
      const double bytes = double(count * columns) * size_of(dtype);
      const Tensor x = made({count, columns}, dtype);
      const Tensor gamma = made({columns}, dtype), beta = made({columns}, dtype);
      const std::string suffix = cat("_", columns, "_", name(dtype));
      table.line("softmax" + suffix, 2 * bytes, 0, [&] { return std::vector{softmax(x, -1)}; });
      table.line("layer_norm" + suffix, 2 * bytes, 0,
                 [&] { return std::vector{layer_norm(x, gamma, beta)}; });
    }
    const int64_t count = table.large(65536);
    const Tensor x = made({count, 768}, dtype), g = made({count, 768}, dtype);
    const Tensor gamma = made({768}, dtype), beta = made({768}, dtype);
    // The gradient alone, of statistics that the forward pass left.
    const Tensor wide = cast(x, DType::f32), center = mean(wide, -1, true);
    const Tensor factor = rsqrt(mean((wide - center) * (wide - center), -1, true) + 1e-5);
    center.eval();
    factor.eval();
    table.line(cat("layer_norm_backward_768_", name(dtype)),
               3.0 * double(count * 768) * size_of(dtype), 0, [&] {
                 const NodePtr node = make_node(
                     Op::layer_norm_backward,
                     {g.value(), x.value(), gamma.value(), center.value(), factor.value()}, {});
                 std::vector<Tensor> gradients;
                 for (const Value& value : graph::outputs_of(node)) gradients.emplace_back(value);
                 return gradients;
               });
  }
  const Tensor x = made({64, 1024}, DType::f32);
  const Tensor gamma = made({1024}, DType::f32), beta = made({1024}, DType::f32);
  constexpr int kRepeats = 50;
  std::vector<Tensor> xs;
  for (int i = 0; i < kRepeats; ++i) xs.push_back(made({64, 1024}, DType::f32));
  const auto all = [&](const std::function<Tensor(const Tensor&)>& f) {
    std::vector<Tensor> results;
    for (const Tensor& each : xs) results.push_back(f(each));
    return results;
  };
  table.line(
      "softmax_replayed_64x1024", 2 * 4 * 65536, 0,
      [&] { return all([](const Tensor& each) { return softmax(each, -1); }); }, kRepeats);
  table.line(
      "layer_norm_replayed_64x1024", 2 * 4 * 65536, 0,
      [&] { return all([&](const Tensor& each) { return layer_norm(each, gamma, beta); }); },
      kRepeats);
}

Tensor indices(int64_t count, int64_t below) {
  const Tensor x = cast(Random(9).uniform({count}) * float(below), DType::i64);
  x.eval();
  return x;
}

// Loss and gradient of a vocabulary's logits; bytes are one read and one write of them.
void losses(const Table& table) {
  const auto add = [&](int64_t rows, int64_t columns, DType dtype) {
    const Tensor x = made({rows, columns}, dtype), targets = indices(rows, columns);
    const double bytes = double(rows * columns) * size_of(dtype);
    const std::string suffix = cat("_", rows, "x", columns, "_", name(dtype));
    table.line("cross_entropy" + suffix, 2 * bytes, 0, [&] {
      const Tensor loss = cross_entropy(x, targets);
      return std::vector{loss, grad(loss, {x})[0]};
    });
    table.line("cross_entropy_loss" + suffix, bytes, 0,
               [&] { return std::vector{cross_entropy(x, targets)}; });
  };
  add(table.large(65536), 50304, DType::bf16);
  add(table.large(16384), 50257, DType::bf16);
  add(table.large(16384), 50304, DType::f32);
}

// The last layer of a language model: three products, and the loss between them.
void heads(const Table& table) {
  const int64_t rows = table.large(16384), width = 768;
  for (const int64_t words : {50257, 50304}) {
    const Tensor x = made({rows, width}, DType::bf16), w = made({words, width}, DType::bf16);
    const Tensor targets = indices(rows, words);
    const double flops = 3 * 2.0 * double(rows) * double(words) * double(width);
    table.line(cat("head_", rows, "x", words, "_bf16"), 0, flops, [&] {
      const Tensor loss = cross_entropy(matmul(x, transpose(w)), targets);
      const std::vector<Tensor> slopes = grad(loss, {x, w});
      return std::vector{loss, slopes[0], slopes[1]};
    });
  }
}

void orders(const Table& table) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const int64_t tokens = table.large(65536), words = 50257;
    const Tensor words_table = made({words, 768}, dtype), g = made({tokens, 768}, dtype);
    const Tensor index = indices(tokens, words), few = indices(tokens, 100);
    const double bytes = double((tokens + words) * 768) * size_of(dtype);
    for (const auto& [suffix, at] : {std::pair("", &index), std::pair("_few", &few)}) {
      table.line(cat("embedding_backward_768", suffix, "_", name(dtype)), bytes, 0,
                 [&] { return grad(sum(take(words_table, *at, 0) * g), {words_table}); });
    }
    const Tensor logits = made({64, words}, dtype);
    table.line(cat("topk_50_64x50257_", name(dtype)), double(64 * words) * size_of(dtype), 0, [&] {
      const Ordered top = topk(logits, 50);
      return std::vector{top.values, top.indices};
    });
    const auto add_sort = [&](int64_t rows, int64_t columns) {
      const Tensor x = made({rows, columns}, dtype);
      table.line(cat("sort_", rows, "x", columns, "_", name(dtype)),
                 double(rows * columns) * double(2 * size_of(dtype) + 8), 0, [&] {
                   const Ordered order = sort(x);
                   return std::vector{order.values, order.indices};
                 });
    };
    add_sort(table.large(65536), 1024);
    add_sort(table.large(8192), 8192);
    add_sort(64, words);
    const auto add_scan = [&](const Shape& shape, int axis) {
      const Tensor x = made(shape, dtype);
      table.line(cat("cumsum_", shape[0], "x", shape[1], "_axis", axis, "_", name(dtype)),
                 2.0 * double(numel(shape)) * size_of(dtype), 0,
                 [&] { return std::vector{cumsum(x, axis)}; });
    };
    add_scan({table.large(32768), 4096}, 1);
    add_scan({1, table.large(int64_t(1) << 27)}, 1);
    add_scan({table.large(32768), 4096}, 0);
  }
}

// q, k and v as a projection leaves them: (B, T, 3, H, D). Only what causal attention sees counts.
void attentions(const Table& table) {
  const auto add = [&](int64_t b, int64_t h, int64_t t, int64_t d, DType dtype) {
    const Tensor qkv = made({b, t, 3, h, d}, dtype), g = made({b, h, t, d}, dtype);
    const auto mixed = [&] {
      const auto part = [&](int64_t i) {
        return permute(squeeze(slice(qkv, 2, i, i + 1), 2), {0, 2, 1, 3});
      };
      return attention(part(0), part(1), part(2), {.causal = true});
    };
    const double flops = 4.0 * double(b * h) * double(t) * double(t) * double(d) / 2;
    const std::string suffix = cat("_", b, "x", h, "x", t, "x", d, "_", name(dtype));
    table.line("attention" + suffix, 0, flops, [&] { return std::vector{mixed()}; });
    table.line("attention_gradient" + suffix, 0, 3.5 * flops, [&] {
      const Tensor y = mixed();
      return std::vector{grad(sum(y * g), {qkv})[0], y};
    });
  };
  for (const DType dtype : {DType::bf16, DType::f32})
    add(table.large(4096) / 64, 12, 1024, 64, dtype);
  add(table.large(512) / 32, 16, 2048, 128, DType::bf16);
  // A token of each sequence on what a cache holds; bytes are its keys and values.
  for (const int64_t b : {1, 64}) {
    const int64_t keys = 1024;
    const Tensor q = made({b, 12, 1, 64}, DType::bf16), k = made({b, 12, keys, 64}, DType::bf16);
    const Tensor v = made({b, 12, keys, 64}, DType::bf16);
    const Tensor lengths = tensor(std::vector<int64_t>(size_t(b), keys), {b});
    lengths.eval();
    table.line(cat("attention_decode_", b, "x12x", keys, "x64_bf16"),
               4.0 * double(b * 12 * keys * 64), 0,
               [&] { return std::vector{attention(q, k, v, {.lengths = lengths})}; });
  }
}

std::vector<Shape> gpt2_shapes(int64_t width) {
  std::vector<Shape> shapes = {{50257, width}, {1024, width}};
  const auto add_pair = [&](const Shape& shape) {
    shapes.push_back(shape);
    shapes.push_back({shape.back()});
  };
  for (int layer = 0; layer < 12; ++layer) {
    for (int norm = 0; norm < 4; ++norm) shapes.push_back({width});
    add_pair({width, 3 * width});
    add_pair({width, width});
    add_pair({width, 4 * width});
    add_pair({4 * width, width});
  }
  shapes.push_back({width});
  shapes.push_back({width});
  return shapes;
}

// A step of an optimiser over the 148 tensors of GPT-2, its gradients being there.
void optimizers(const Table& table) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    std::vector<Var> vars;
    std::vector<Tensor> grads;
    double n = 0;
    for (const Shape& shape : gpt2_shapes(table.large(768 * 64) / 64)) {
      vars.emplace_back(made(shape, dtype), cat("p", vars.size()));
      grads.push_back(made(shape, dtype));
      n += double(numel(shape));
    }
    const std::string suffix = dtype == DType::f32 ? "" : cat("_", name(dtype));
    const auto give_grads = [&] {
      for (size_t i = 0; i < vars.size(); ++i) vars[i].set_grad(grads[i]);
    };
    const double read_once = n * size_of(dtype);
    table.line("global_norm_gpt2" + suffix, read_once, 0, [&] {
      give_grads();
      const Tensor norm = clip_grad_norm(vars, 1.0);
      for (const Var& var : vars) var.set_grad({});
      return std::vector{norm};
    });
    AdamW adamw(vars, {.lr = 1e-4, .weight_decay = 0.1});
    // Value, gradient and two moments in, all but the gradient out; halves have a master, too.
    const double moved = dtype == DType::f32 ? 28 * n : 30 * n;
    table.line("adamw_gpt2" + suffix, moved, 0, [&] {
      give_grads();
      adamw.step();
      return std::vector<Tensor>{};
    });
    table.line("clipped_adamw_gpt2" + suffix, moved + read_once, 0, [&] {
      give_grads();
      const Tensor norm = clip_grad_norm(vars, 1.0);
      adamw.step();
      return std::vector{norm};
    });
  }
}

constexpr double kShortFlops = 4e9;

void products(const Table& table) {
  const auto add = [&](const std::string& name, int64_t m, int64_t n, int64_t k, DType dtype) {
    // A short product alone takes as long as its launch: several in one replay.
    const double flops = 2.0 * double(m) * double(n) * double(k);
    const int repeats = flops < kShortFlops ? 20 : 1;
    const Tensor b = made({n, k}, dtype);
    std::vector<Tensor> xs;
    std::vector<Var> products;
    for (int i = 0; i < repeats; ++i) xs.push_back(made({m, k}, dtype));
    for (int i = 0; i < repeats; ++i) products.emplace_back(zeros({m, n}, dtype));
    table.line(
        name, 0, flops,
        [&] {
          for (size_t i = 0; i < xs.size(); ++i) products[i].assign(matmul(xs[i], transpose(b)));
          return std::vector<Tensor>{};
        },
        repeats);
  };
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (int64_t n = 128; n <= table.large(8192); n *= 2) {
      add(cat("matmul_", n, "_", name(dtype)), n, n, n, dtype);
    }
  }
  const int64_t tokens = table.large(65536);
  add("linear_qkv_bf16", tokens, 2304, 768, DType::bf16);
  add("linear_proj_bf16", tokens, 768, 768, DType::bf16);
  add("linear_fc_bf16", tokens, 3072, 768, DType::bf16);
  add("linear_fcproj_bf16", tokens, 768, 3072, DType::bf16);
  add("linear_head_bf16", tokens / 4, 50304, 768, DType::bf16);
  const Tensor x = made({tokens, 768}, DType::bf16), w = made({3072, 768}, DType::bf16);
  const Tensor bias = made({3072}, DType::bf16);
  table.line("linear_bias_gelu_bf16", 0, 2.0 * double(tokens) * 3072 * 768,
             [&] { return std::vector{gelu_tanh(matmul(x, transpose(w)) + bias)}; });
  table.line("linear_bias_gelu_saved_bf16", 0, 2.0 * double(tokens) * 3072 * 768, [&] {
    const Tensor sum = matmul(x, transpose(w)) + bias;
    return std::vector{gelu_tanh(sum), sum};
  });
  table.line("linear_bias_relu_bf16", 0, 2.0 * double(tokens) * 3072 * 768,
             [&] { return std::vector{relu(matmul(x, transpose(w)) + bias)}; });
  const Tensor g = made({tokens, 3072}, DType::bf16);
  table.line("linear_gradients_bf16", 0, 2.0 * double(tokens) * 3072 * 768, [&] {
    return std::vector{matmul(transpose(x), g), sum(g, 0)};
  });
  table.line("linear_slope_bf16", 0, 2.0 * double(tokens) * 3072 * 768, [&] {
    const Tensor y = matmul(x, transpose(w)) * gelu_tanh_slope(g);
    return std::vector{y, sum(y, 0)};
  });
}

}  // namespace

// Other plans of generated kernels, to be measured beside the library's.
void choose_tuning() {
  const auto number = [](const char* name, int64_t otherwise) {
    const char* text = std::getenv(name);
    return text == nullptr ? otherwise : std::atoll(text);
  };
  gpu::Tuning& tuning = gpu::tuning();
  tuning.map_turns = int(number("BENCH_MAP_TURNS", tuning.map_turns));
  tuning.groups_per_unit = number("BENCH_GROUPS_PER_UNIT", tuning.groups_per_unit);
  tuning.split_points = number("BENCH_SPLIT_POINTS", tuning.split_points);
  tuning.cluster_groups = number("BENCH_CLUSTER_GROUPS", tuning.cluster_groups);
  tuning.long_rows = number("BENCH_LONG_ROWS", 1) != 0;
}

int main(int count, char** words) {
  init();
  choose_tuning();
  Options options;
  for (int i = 1; i < count; ++i) {
    if (std::strcmp(words[i], "--device") == 0 && i + 1 < count) {
      options.device = Device(words[++i]);
    } else if (std::strcmp(words[i], "--small") == 0) {
      options.divide = 64;
    } else if (std::strcmp(words[i], "--turns") == 0) {
      options.takes_turns = true;
    } else {
      options.pattern = words[i];
    }
  }
  set_default_device(options.device);
  const Table table(options);
  products(table);
  attentions(table);
  elementwise(table);
  rows(table);
  losses(table);
  heads(table);
  orders(table);
  optimizers(table);
}
