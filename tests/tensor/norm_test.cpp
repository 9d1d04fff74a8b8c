// Norms over rows and groups against plain loops in f64.
#include <gtest/gtest.h>

#include <cmath>

#include "support/expect_error.h"
#include "tensor/differences.h"

namespace tessera {
namespace {

using Doubles = std::vector<double>;
using Tensors = std::vector<Tensor>;

constexpr double kEpsilon = 1e-3;

Doubles rms_loop(const Tensor& x, const Tensor& gamma) {
  const Doubles in = to_doubles(x), g = to_doubles(gamma);
  const size_t columns = g.size();
  Doubles out(in.size());
  for (size_t row = 0; row < in.size(); row += columns) {
    double squares = 0;
    for (size_t j = 0; j < columns; ++j) squares += in[row + j] * in[row + j];
    const double scale = 1 / std::sqrt(squares / double(columns) + kEpsilon);
    for (size_t j = 0; j < columns; ++j) out[row + j] = in[row + j] * scale * g[j];
  }
  return out;
}

// x (N, C, L)
Doubles group_loop(const Tensor& x, size_t groups, const Tensor& gamma, const Tensor& beta) {
  const Doubles in = to_doubles(x), g = to_doubles(gamma), b = to_doubles(beta);
  const size_t batch = size_t(x.size(0)), channels = size_t(x.size(1));
  const size_t length = in.size() / (batch * channels), count = channels / groups * length;
  Doubles out(in.size());
  for (size_t start = 0; start < in.size(); start += count) {
    double mean = 0, variance = 0;
    for (size_t i = 0; i < count; ++i) mean += in[start + i] / double(count);
    for (size_t i = 0; i < count; ++i) {
      variance += (in[start + i] - mean) * (in[start + i] - mean) / double(count);
    }
    for (size_t i = start; i < start + count; ++i) {
      const size_t channel = i / length % channels;
      out[i] = (in[i] - mean) / std::sqrt(variance + kEpsilon) * g[channel] + b[channel];
    }
  }
  return out;
}

TEST(RmsNorm, Values) {
  const Tensor x = random_tensor({2, 3, 5}, 1, DType::f64, -3, 3),
               gamma = random_tensor({5}, 2, DType::f64);
  expect_near(rms_norm(x, gamma, kEpsilon), rms_loop(x, gamma));
  expect_near(rms_norm(reshape(x, {30}), random_tensor({30}, 3, DType::f64), kEpsilon),
              rms_loop(x, random_tensor({30}, 3, DType::f64)));
  // By default epsilon is 1e-6: at √epsilon the root mean square is that of both together.
  expect_near(rms_norm(full({4}, 1e-3, DType::f64), ones({4}, DType::f64)),
              Doubles(4, std::sqrt(0.5)), 1e-9);
}

TEST(RmsNorm, HalfTypesComputeInF32) {
  // Their squares are beyond f16, and their sum is beyond what bf16 can tell from its terms.
  const Tensor large = full({1000}, 300, DType::f16), gamma = ones({1000}, DType::f16);
  EXPECT_EQ(rms_norm(large, gamma).dtype(), DType::f16);
  expect_near(rms_norm(large, gamma), Doubles(1000, 1));
  const Tensor many = ones({1000}, DType::bf16);
  expect_near(rms_norm(many, ones({1000})), Doubles(1000, 1));
  EXPECT_EQ(rms_norm(many, ones({1000})).dtype(), DType::bf16);
  EXPECT_EQ(rms_norm(tensor<int32_t>({3, 4}), ones({2})).dtype(), DType::f32);
}

TEST(RmsNorm, EmptyAndZeroRows) {
  EXPECT_EQ(rms_norm(ones({3, 0}), ones({0})).shape(), (Shape{3, 0}));
  EXPECT_EQ(rms_norm(ones({0, 3}), ones({3})).shape(), (Shape{0, 3}));
  expect_near(rms_norm(zeros({2, 3}), ones({3})), Doubles(6, 0));
}

TEST(GroupNorm, Values) {
  const Tensor x = random_tensor({2, 6, 2, 3}, 4, DType::f64, -3, 3),
               gamma = random_tensor({6}, 5, DType::f64), beta = random_tensor({6}, 6, DType::f64);
  for (const int64_t groups : {1, 2, 3, 6}) {
    SCOPED_TRACE(groups);
    expect_near(group_norm(x, groups, gamma, beta, kEpsilon),
                group_loop(x, size_t(groups), gamma, beta));
  }
  const Tensor rows = reshape(x, {12, 6});
  expect_near(group_norm(rows, 2, gamma, beta, kEpsilon), group_loop(rows, 2, gamma, beta));
  // One group of rows is layer_norm.
  expect_near(layer_norm(rows, gamma, beta, kEpsilon), group_loop(rows, 1, gamma, beta));
}

TEST(GroupNorm, HalfTypesAndEmpty) {
  const Tensor x = random_tensor({2, 4, 3}, 7), gamma = random_tensor({4}, 8),
               beta = random_tensor({4}, 9);
  const Tensor half = cast(x, DType::bf16);
  EXPECT_EQ(group_norm(half, 2, gamma, beta).dtype(), DType::bf16);
  expect_near(group_norm(half, 2, gamma, beta, kEpsilon), group_loop(half, 2, gamma, beta),
              1.0 / 256);
  // The squares of these are beyond f16.
  const Tensor large = cast(tensor<float>({300, -300, 300, -300}, {1, 2, 2}), DType::f16);
  expect_near(group_norm(large, 1, ones({2}), zeros({2})), {1, -1, 1, -1});
  EXPECT_EQ(group_norm(ones({0, 4, 3}), 2, gamma, beta).shape(), (Shape{0, 4, 3}));
  EXPECT_EQ(group_norm(ones({2, 4, 0}), 2, gamma, beta).shape(), (Shape{2, 4, 0}));
}

TEST(LayerNorm, TakesOtherDtypesOfScaleAndShift) {
  const Tensor x = cast(random_tensor({3, 4}, 10), DType::bf16);
  const Tensor y = layer_norm(x, ones({4}), zeros({4}));
  EXPECT_EQ(y.dtype(), DType::bf16);
  EXPECT_EQ(to_doubles(y),
            to_doubles(layer_norm(x, ones({4}, DType::bf16), zeros({4}, DType::bf16))));
  EXPECT_EQ(layer_norm(tensor<int32_t>({3, 4}), ones({2}), zeros({2})).dtype(), DType::f32);
}

TEST(Norms, Gradients) {
  const Tensor x = random_tensor({2, 4, 3}, 11, DType::f64),
               row = random_tensor({3}, 12, DType::f64), gamma = random_tensor({4}, 13, DType::f64),
               beta = random_tensor({4}, 14, DType::f64);
  expect_gradients([](const Tensors& in) { return rms_norm(in[0], in[1], kEpsilon); }, {x, row});
  expect_gradients([](const Tensors& in) { return group_norm(in[0], 2, in[1], in[2], kEpsilon); },
                   {x, gamma, beta});
}

TEST(LogSoftmax, HalfTypesComputeInF32) {
  // log Σ exp is 100 + log 512 = 106.238, which bf16 would round to 106.
  const Tensor y = log_softmax(full({512}, 100, DType::bf16));
  EXPECT_EQ(y.dtype(), DType::bf16);
  expect_near(y, Doubles(512, -6.25));
  EXPECT_EQ(log_softmax(ones({2, 0})).shape(), (Shape{2, 0}));
}

TEST(NormsError, Texts) {
  const Tensor x = ones({2, 3});
  EXPECT_EQ(error_text([&] { rms_norm(x, ones({2})); }),
            "rms_norm: expected scale and shift of (3,) for (2, 3), got (2,)");
  EXPECT_EQ(error_text([&] { rms_norm(scalar(1.0f), ones({1})); }),
            "rms_norm: expected at least 1 dimension, got ()");
  EXPECT_EQ(error_text([&] { layer_norm(scalar(1.0f), ones({1}), ones({1})); }),
            "layer_norm: expected at least 1 dimension, got ()");
  EXPECT_EQ(error_text([&] {
              layer_norm(x, ones({3}), ones({3, 1}));
            }),
            "layer_norm: expected scale and shift of (3,) for (2, 3), got (3, 1)");
  EXPECT_EQ(error_text([&] { group_norm(ones({3}), 1, ones({3}), ones({3})); }),
            "group_norm: expected x (N, C, …), got (3,)");
  EXPECT_EQ(error_text([&] { group_norm(x, 2, ones({3}), ones({3})); }),
            "group_norm: expected a number of groups that divides the channels of (2, 3), got 2");
  EXPECT_EQ(error_text([&] { group_norm(x, 0, ones({3}), ones({3})); }),
            "group_norm: expected a number of groups that divides the channels of (2, 3), got 0");
  EXPECT_EQ(error_text([&] { group_norm(x, 3, ones({3}), ones({2})); }),
            "group_norm: expected scale and shift of (3,) for (2, 3), got (2,)");
}

}  // namespace
}  // namespace tessera
