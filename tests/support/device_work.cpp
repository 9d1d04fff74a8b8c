#include "support/device_work.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tessera/models/gpt.h"
#include "tessera/optim/optim.h"
#include "tessera/runtime/caching_allocator.h"
#include "tessera/runtime/registry.h"
#include "tessera/tensor/device.h"
#include "tessera/tensor/eval.h"
#include "tessera/tessera.h"

namespace tessera::test {

namespace {

constexpr int64_t kPeriod = 251;  // a prime: no power of two hides a wrapped index
constexpr int kSteps = 20, kSteadySteps = 10;

// i mod 251, as bytes.
Tensor pattern(int64_t n, DType dtype) { return cast(arange(n) % kPeriod, dtype).eval(); }

int64_t sum_of_pattern(int64_t n) {
  const int64_t rest = n % kPeriod;
  return n / kPeriod * (kPeriod * (kPeriod - 1) / 2) + rest * (rest - 1) / 2;
}

// The ends, and both sides of where 31 and 32 bits end.
std::vector<int64_t> places(int64_t n) {
  std::vector<int64_t> result = {0, n / 3, n - 1};
  for (const int bits : {31, 32}) {
    for (const int64_t step : {-1, 0, 1}) {
      const int64_t place = (int64_t(1) << bits) + step;
      if (place < n) result.push_back(place);
    }
  }
  return result;
}

void expect_pattern(const Tensor& x, int64_t times, int64_t plus) {
  for (const int64_t place : places(x.numel())) {
    const Tensor one = cast(slice(x, 0, place, place + 1), DType::f32);
    EXPECT_EQ(one.to_vector<float>()[0], float(place % kPeriod * times + plus)) << place;
  }
}

CounterValues operator-(const CounterValues& a, const CounterValues& b) {
  return {a.allocations - b.allocations, a.bytes_in_use - b.bytes_in_use,
          a.peak_bytes - b.peak_bytes,   a.compiles - b.compiles,
          a.launches - b.launches,       a.synchronizations - b.synchronizations};
}

// `step` gives the loss of one step.
template <class F>
TrainingRun run_steps(F&& step) {
  TrainingRun run;
  for (int i = 0; i < kSteps; ++i) run.losses.push_back(float(step().item()));
  const CounterValues before = counters().snapshot();
  for (int i = 0; i < kSteadySteps; ++i) step();
  run.steady = counters().snapshot() - before;
  return run;
}

std::vector<int64_t> characters(int64_t n, int64_t step, int64_t vocabulary) {
  std::vector<int64_t> values;
  for (int64_t i = 0; i < n; ++i) values.push_back(i * step % vocabulary);
  return values;
}

}  // namespace

void check_map_and_sum(int64_t n) {
  {
    const Tensor bytes = pattern(n, DType::u8), more = (bytes + uint8_t(3)).eval();
    expect_pattern(bytes, 1, 0);
    expect_pattern(more, 1, 3);
    EXPECT_EQ(sum(bytes).to_vector<int64_t>()[0], sum_of_pattern(n));
    EXPECT_EQ(sum(more).to_vector<int64_t>()[0], sum_of_pattern(n) + 3 * n);
  }
  release_cached_memory();
  // Every value and its double have at most eight binary digits: bf16 holds them exactly.
  const Tensor halves = pattern(n, DType::bf16), twice = (halves * 2.f).eval();
  expect_pattern(twice, 2, 0);
  EXPECT_EQ(sum(cast(twice, DType::f64)).item(), 2 * double(sum_of_pattern(n)));
}

void check_index_select(int64_t n) {
  const Tensor bytes = pattern(n, DType::u8);
  const std::vector<int64_t> wanted = places(n);
  const std::vector<uint8_t> found =
      index_select(bytes, tensor(wanted, {int64_t(wanted.size())}), 0).to_vector<uint8_t>();
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) EXPECT_EQ(found[i], wanted[i] % kPeriod) << wanted[i];

  constexpr int64_t kColumns = 1000;
  const int64_t rows = n / kColumns;
  const Tensor table = reshape(slice(bytes, 0, 0, rows * kColumns), {rows, kColumns});
  const std::vector<uint8_t> picked =
      index_select(table, tensor<int64_t>({rows - 1, 0}, {2}), 0).to_vector<uint8_t>();
  ASSERT_EQ(int64_t(picked.size()), 2 * kColumns);
  for (int64_t i = 0; i < kColumns; ++i) {
    ASSERT_EQ(picked[size_t(i)], ((rows - 1) * kColumns + i) % kPeriod) << i;
    ASSERT_EQ(picked[size_t(kColumns + i)], i % kPeriod) << i;
  }
}

void check_memory(Device device, int64_t bytes) {
  release_cached_memory();
  const MemoryStats before = memory_stats(device);
  {
    const Tensor all = pattern(bytes, DType::u8);
    const int64_t used = memory_stats(device).in_use - before.in_use;
    EXPECT_GE(used, bytes);
    EXPECT_LE(used, bytes + (int64_t(64) << 20)) << "rounded up by a small part";
    EXPECT_EQ(sum(all).to_vector<int64_t>()[0], sum_of_pattern(bytes));
    expect_pattern(all, 1, 0);
    EXPECT_LE(*memory_stats(device).free, *before.free - bytes);
  }
  release_cached_memory();
  const MemoryStats after = memory_stats(device);
  EXPECT_EQ(after.in_use, before.in_use);
  EXPECT_GT(*after.free, *before.free - bytes / 2) << "given back, but for arenas and kernels";
}

void check_replay(Device device, int kernels) {
  std::vector<float> weights, values;
  for (int i = 0; i < 256; ++i) {
    weights.push_back(0.3f * std::sin(float(i)));
    values.push_back(std::cos(float(i)));
  }
  const auto make = [&](Device where) {
    set_default_device(where);
    return compile([w = tensor(weights, {16, 16}), kernels](const Tensor& x) {
      Tensor y = x;
      for (int i = 0; i < kernels; ++i) y = i % 2 == 0 ? matmul(y, w) : tanh(y);
      return y;
    });
  };
  const std::vector<float> expected =
      make(DeviceKind::cpu)(tensor(values, {16, 16})).to_vector<float>();
  auto program = make(device);
  const Tensor x = tensor(values, {16, 16});
  for (int i = 0; i < 4; ++i) {
    const std::vector<float> found = program(x).to_vector<float>();
    for (size_t k = 0; k < expected.size(); ++k) ASSERT_NEAR(found[k], expected[k], 1e-5) << k;
  }
  EXPECT_EQ(program.program().report.kernels, kernels);
  const CounterValues before = counters().snapshot();
  for (int i = 0; i < kSteadySteps; ++i) program(x);
  EXPECT_EQ((counters().snapshot() - before).launches, kSteadySteps);
}

void check_long_rows(Device device, int64_t rows, int64_t columns, bool generated) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const CompileOptions before = set_compile_options({.kernel_ops = !generated});
    std::vector<std::vector<float>> results;
    for (const Device each : {device, Device(DeviceKind::cpu)}) {
      set_default_device(each);
      const auto made = [&](const Shape& shape, int seed) {
        return cast(Random(uint64_t(seed)).uniform(shape) * 4 - 2, dtype).eval();
      };
      const Tensor x = made({rows, columns}, 1);
      const Tensor gamma = made({columns}, 2), beta = made({columns}, 3);
      const Tensor shares = softmax(x, -1).eval(), normed = layer_norm(x, gamma, beta).eval();
      results.push_back((cast(shares, DType::f32) * double(columns)).to_vector<float>());
      results.push_back(cast(normed, DType::f32).to_vector<float>());
    }
    set_default_device(device);
    set_compile_options(before);
    const double tolerance = is_half(dtype) ? 0.02 : 2e-5;
    for (size_t k = 0; k < 2; ++k) {
      for (size_t i = 0; i < results[k].size(); ++i) {
        const double expected = results[2 + k][i];
        ASSERT_NEAR(results[k][i], expected, tolerance * std::max(1.0, std::abs(expected)))
            << dtype << " " << k << " " << i;
      }
    }
  }
}

void check_relu(DType dtype) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInf = std::numeric_limits<float>::infinity();
  constexpr int64_t kDepth = 8, kColumns = 24, kTinyFrom = 12;
  const float tiny = dtype == DType::f16 ? 1e-5f : 1e-30f;  // its square is 0
  const std::vector<float> sums = {kNan, -1, 0, 2, kInf, -kInf, -tiny, 3};
  std::vector<float> rows, weights;
  for (const float sum : sums) {
    rows.push_back(sum);
    rows.insert(rows.end(), kDepth - 1, 0);
  }
  // A tiny number times another is -0 where their product is below zero.
  for (int64_t i = 0; i < kDepth * kColumns; ++i) {
    weights.push_back(i % kColumns < kTinyFrom ? 1 : tiny);
  }
  const Tensor x = cast(tensor(rows, {int64_t(sums.size()), kDepth}), dtype).eval();
  const Tensor w = cast(tensor(weights, {kDepth, kColumns}), dtype).eval();
  const Tensor bias = cast(full({kColumns}, -0.0f), dtype).eval();
  const auto program = compile([&](const Tensor& b) {
    const Tensor y = relu(matmul(x, w) + b);
    return std::vector{y, grad(sum(y), std::vector{b})[0]};
  });
  const std::vector<Tensor> results = program(bias);
  int64_t linears = 0;
  for (const Instruction& one : program.program().instructions) linears += one.label == "linear";
  EXPECT_EQ(linears, 1);
  const std::vector<float> y = cast(results[0], DType::f32).to_vector<float>();
  for (size_t i = 0; i < y.size(); ++i) {
    const float sum = sums[i / kColumns];
    const bool is_tiny = int64_t(i % kColumns) >= kTinyFrom;
    if (std::isnan(sum)) {
      EXPECT_TRUE(std::isnan(y[i])) << i;
    } else {
      const float expected = sum <= 0 ? 0 : is_tiny ? sum * tiny : sum;
      EXPECT_TRUE(y[i] == expected || std::abs(y[i] / expected - 1) < 0.01f) << i << ": " << y[i];
    }
  }
  EXPECT_EQ(cast(results[1], DType::f32).to_vector<float>(),
            std::vector<float>(kColumns, 4));  // of NaN, 2, inf and 3
}

TrainingRun train_mlp(Device device) {
  set_default_device(device);
  Var w1(reshape(sin(arange(16 * 32, DType::f32)), {16, 32}) * 0.3f, "w1");
  Var w2(reshape(cos(arange(32, DType::f32)), {32, 1}) * 0.3f, "w2");
  Var rate(scalar(0.05f), "rate", false);
  auto step = compile([&](const Tensor& x, const Tensor& y) {
    const Tensor error = matmul(gelu(matmul(x, w1)), w2) - y;
    const Tensor loss = mean(error * error);
    const std::vector<Tensor> grads = grad(loss, {w1, w2});
    w1.assign(w1.value() - rate.value() * grads[0]);
    w2.assign(w2.value() - rate.value() * grads[1]);
    return loss;
  });
  const Tensor x = reshape(sin(arange(8 * 16, DType::f32) * 0.7f), {8, 16}).eval();
  const Tensor y = reshape(cos(arange(8, DType::f32)), {8, 1}).eval();
  return run_steps([&] { return step(x, y); });
}

TrainingRun train_gpt(Device device) {
  set_default_device(device);
  const GptConfig config{.vocabulary = 65, .context = 16, .width = 32, .layers = 2, .heads = 2};
  const Gpt gpt(config, Random(1));
  AdamW optimizer(gpt.parameters());
  auto step = compile([&](const Tensor& tokens, const Tensor& targets) {
    const Tensor loss = gpt.loss(tokens, targets);
    backward(loss);
    optimizer.step();
    return loss;
  });
  const int64_t batch = 4, n = batch * config.context;
  const Shape shape = {batch, config.context};
  const Tensor tokens = tensor(characters(n, 7, config.vocabulary), shape).eval();
  const Tensor targets = tensor(characters(n, 11, config.vocabulary), shape).eval();
  return run_steps([&] { return step(tokens, targets); });
}

void check_training(TrainingRun (*train)(Device), Device device) {
  const TrainingRun here = train(device), there = train(DeviceKind::cpu);
  ASSERT_EQ(here.losses.size(), there.losses.size());
  for (size_t i = 0; i < there.losses.size(); ++i) {
    EXPECT_NEAR(here.losses[i], there.losses[i], 1e-4) << "step " << i;
  }
  EXPECT_LT(here.losses.back(), here.losses.front());
  EXPECT_EQ(here.steady.allocations, 0);
  EXPECT_EQ(here.steady.compiles, 0);
  EXPECT_EQ(here.steady.synchronizations, 0);
  EXPECT_EQ(here.steady.launches, kSteadySteps);
}

}  // namespace tessera::test
