// Functions of networks against plain loops in f64.
#include <gtest/gtest.h>

#include <limits>

#include <cmath>
#include <numbers>

#include "support/expect_error.h"
#include "tessera/conformance/reference.h"
#include "tessera/tensor/autograd.h"
#include "tessera/tensor/ops.h"

namespace tessera {
namespace {

using Doubles = std::vector<double>;

void expect_near(const Tensor& actual, const Doubles& expected, double tolerance = 1e-12) {
  const Doubles values = to_doubles(actual);
  ASSERT_EQ(values.size(), expected.size());
  for (size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(values[i], expected[i], tolerance) << i;
}

template <class F>
Doubles map(const Tensor& x, F f) {
  Doubles values = to_doubles(x);
  for (double& v : values) v = f(v);
  return values;
}

const Tensor& sample() {
  static const Tensor x = random_tensor({4, 5}, 11, DType::f64, -3, 3);
  return x;
}

TEST(Network, Activations) {
  expect_near(relu(sample()), map(sample(), [](double v) { return v > 0 ? v : 0; }));
  expect_near(silu(sample()), map(sample(), [](double v) { return v / (1 + std::exp(-v)); }));
  expect_near(gelu_tanh(sample()), map(sample(), [](double v) {
                const double inner = std::sqrt(2 / std::numbers::pi) * (v + 0.044715 * v * v * v);
                return 0.5 * v * (1 + std::tanh(inner));
              }));
}

// Softmax over axis 1 of (A, B, C), which also covers the first and the last axis.
Doubles softmax_loop(const Doubles& x, size_t a, size_t b, size_t c) {
  Doubles y(x.size());
  for (size_t i = 0; i < a; ++i) {
    for (size_t k = 0; k < c; ++k) {
      double sum = 0;
      for (size_t j = 0; j < b; ++j) sum += std::exp(x[(i * b + j) * c + k]);
      for (size_t j = 0; j < b; ++j)
        y[(i * b + j) * c + k] = std::exp(x[(i * b + j) * c + k]) / sum;
    }
  }
  return y;
}

TEST(Network, SoftmaxOnEveryAxis) {
  const Tensor x = random_tensor({3, 4, 5}, 12, DType::f64, -3, 3);
  const Doubles values = to_doubles(x);
  expect_near(softmax(x, 0), softmax_loop(values, 1, 3, 20));
  expect_near(softmax(x, 1), softmax_loop(values, 3, 4, 5));
  expect_near(softmax(x, -2), softmax_loop(values, 3, 4, 5));
  expect_near(softmax(x), softmax_loop(values, 12, 5, 1));
  expect_near(exp(log_softmax(x, 1)), softmax_loop(values, 3, 4, 5));
  EXPECT_EQ(softmax(arange(3)).dtype(), DType::f32);
  EXPECT_EQ(error_text([&] { softmax(x, 3); }), "softmax: axis 3 is out of range for 3 dimensions");
  EXPECT_EQ(error_text([&] { log_softmax(x, 3); }),
            "log_softmax: axis 3 is out of range for 3 dimensions");
}

TEST(Network, SoftmaxOfLargeNumbers) {
  const Tensor x = tensor(std::vector<float>{1000, 999, -1000});
  const double e = std::exp(-1.0);
  expect_near(softmax(x), {1 / (1 + e), e / (1 + e), 0}, 1e-6);
  expect_near(logsumexp(x), {1000 + std::log(1 + e)}, 1e-4);
}

TEST(Network, Logsumexp) {
  const Doubles x = to_doubles(sample());
  Doubles rows;
  for (size_t i = 0; i < 4; ++i) {
    double sum = 0;
    for (size_t j = 0; j < 5; ++j) sum += std::exp(x[5 * i + j]);
    rows.push_back(std::log(sum));
  }
  expect_near(logsumexp(sample(), {-1}), rows);
  EXPECT_EQ(logsumexp(sample(), {0}).shape(), (Shape{5}));
  EXPECT_EQ(logsumexp(sample(), {0}, true).shape(), (Shape{1, 5}));
}

TEST(Network, LayerNorm) {
  const Tensor gamma = random_tensor({5}, 13, DType::f64),
               beta = random_tensor({5}, 14, DType::f64);
  const Doubles x = to_doubles(sample()), g = to_doubles(gamma), b = to_doubles(beta);
  const double epsilon = 1e-3;
  Doubles expected;
  for (size_t i = 0; i < 4; ++i) {
    double mean = 0, variance = 0;
    for (size_t j = 0; j < 5; ++j) mean += x[5 * i + j] / 5;
    for (size_t j = 0; j < 5; ++j) variance += std::pow(x[5 * i + j] - mean, 2) / 5;
    for (size_t j = 0; j < 5; ++j) {
      expected.push_back((x[5 * i + j] - mean) / std::sqrt(variance + epsilon) * g[j] + b[j]);
    }
  }
  expect_near(layer_norm(sample(), gamma, beta, epsilon), expected);
}

TEST(Network, CrossEntropy) {
  const Tensor logits = random_tensor({2, 3, 5}, 15, DType::f64, -3, 3);
  const std::vector<int32_t> targets = {4, 0, 2, 2, 1, 3};
  const Doubles x = to_doubles(logits);
  double expected = 0;
  for (size_t i = 0; i < 6; ++i) {
    double sum = 0;
    for (size_t j = 0; j < 5; ++j) sum += std::exp(x[5 * i + j]);
    expected += (std::log(sum) - x[5 * i + size_t(targets[i])]) / 6;
  }
  const Tensor t = tensor(targets, {2, 3});
  expect_near(cross_entropy(logits, t), {expected});
  EXPECT_EQ(cross_entropy(cast(logits, DType::bf16), t).dtype(), DType::f32);
  EXPECT_NEAR(cross_entropy(cast(logits, DType::bf16), t).item(), expected, 0.02);
  expect_near(
      cross_entropy(reshape(slice(slice(logits, 0, 0, 1), 1, 0, 1), {5}), scalar(int64_t{4})),
      {std::log([&] {
         double sum = 0;
         for (size_t j = 0; j < 5; ++j) sum += std::exp(x[j]);
         return sum;
       }()) -
       x[4]});
  EXPECT_EQ(error_text([&] { cross_entropy(logits, arange(2)); }),
            "cross_entropy: expected logits (…, C) and targets (…), got (2, 3, 5) and (2,)");
}

TEST(Network, NonFiniteValuesStayVisible) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::nanf("");
  const std::vector<float> y = relu(tensor<float>({nan, -1, 2, inf, -inf})).to_vector<float>();
  EXPECT_TRUE(std::isnan(y[0]));
  EXPECT_EQ((std::vector<float>(y.begin() + 1, y.end())), (std::vector<float>{0, 2, inf, 0}));
  EXPECT_EQ(logsumexp(tensor<float>({-inf, -inf})).item(), -inf);
  EXPECT_EQ(logsumexp(tensor<float>({inf, 0})).item(), inf);
  EXPECT_NEAR(logsumexp(tensor<float>({1000, 1000})).item(), 1000 + std::log(2.0), 1e-3);
}

TEST(Network, MeansOfHalfTypesDoNotOverflow) {
  const Tensor many = cast(ones({100000}), DType::f16);
  EXPECT_EQ(mean(many).item(), 1);
  EXPECT_EQ(mean(many).dtype(), DType::f16);
  EXPECT_EQ(mean(full({7}, 7)).item(), 7);
}

TEST(Network, APowerOfZeroIsFlatAtZero) {
  const Tensor x = tensor<float>({0, 2});
  EXPECT_EQ(grad(sum(pow(x, 0)), x).to_vector<float>(), (std::vector<float>{0, 0}));
  Tensor slope = sum(pow(x, 2));
  for (int order = 0; order < 3; ++order) slope = sum(grad(slope, x));
  EXPECT_EQ(slope.item(), 0);
}

}  // namespace
}  // namespace tessera
