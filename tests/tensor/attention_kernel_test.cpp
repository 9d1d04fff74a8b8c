// Attention's kernels against its definition in plain ops, on every combination of its options.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tensor/differences.h"
#include "tessera/tensor/compiled.h"
#include "tessera/tensor/eval.h"
#include "tessera/tensor/random.h"

namespace tessera {
namespace {

using Tensors = std::vector<Tensor>;

constexpr double kInf = std::numeric_limits<double>::infinity();

class WithoutKernels {
 public:
  WithoutKernels() {
    CompileOptions options;
    options.kernel_ops = false;
    previous_ = set_compile_options(options);
  }
  ~WithoutKernels() { set_compile_options(previous_); }

 private:
  CompileOptions previous_;
};

struct Sizes {
  int64_t b, h, g, t, s, d, e;
};

// y and the gradients of a weighted sum of y with respect to q, k, v and an added mask.
std::vector<Array> results(const Tensors& x, const AttentionOptions& options) {
  const Tensor y = attention(x[0], x[1], x[2], options);
  const Tensor weights = random_tensor(y.shape(), 71, y.dtype(), -1, 1);
  Tensors wanted = x;
  if (options.mask.defined() && is_float(options.mask.dtype())) wanted.push_back(options.mask);
  Tensors all = grad(sum(cast(y * weights, DType::f64)), wanted);
  all.push_back(y);
  std::vector<Array> arrays;
  for (const Tensor& tensor : all) arrays.push_back(read_array(tensor));
  return arrays;
}

// Elements differ by at most `tolerance` of the largest of their array.
void expect_equal(const std::vector<Array>& actual, const std::vector<Array>& expected,
                  double tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    ASSERT_EQ(actual[i].type, expected[i].type);
    double largest = 0;
    for (const double value : expected[i].real) largest = std::max(largest, std::fabs(value));
    for (size_t j = 0; j < actual[i].real.size(); ++j) {
      ASSERT_NEAR(actual[i].real[j], expected[i].real[j], tolerance * (largest + 1e-3))
          << "array " << i << ", element " << j;
    }
  }
}

double tolerance_of(DType dtype) {
  switch (dtype) {
    case DType::f64: return 1e-12;
    case DType::f32: return 1e-5;
    case DType::f16: return 3e-3;
    default: return 2.5e-2;
  }
}

void compare(const Tensors& x, const AttentionOptions& options) {
  const std::vector<Array> actual = results(x, options);
  const WithoutKernels plain;
  expect_equal(actual, results(x, options), tolerance_of(x[0].dtype()));
}

Tensors operands(const Sizes& z, DType dtype) {
  return {random_tensor({z.b, z.h, z.t, z.d}, 61, dtype, -2, 2),
          random_tensor({z.b, z.g, z.s, z.d}, 62, dtype, -2, 2),
          random_tensor({z.b, z.g, z.s, z.e}, 63, dtype, -2, 2)};
}

constexpr Sizes kSizes[] = {
    {2, 2, 2, 7, 7, 5, 3},       // few queries
    {1, 2, 1, 4, 50, 5, 16},     // few that share keys
    {2, 4, 2, 5, 50, 5, 3},      // less than a vector
    {1, 4, 2, 33, 50, 16, 24},   // a panel and one more
    {2, 3, 1, 50, 33, 8, 40},    // more queries than keys
    {1, 2, 2, 130, 300, 33, 9},  // several blocks of keys
    {1, 1, 1, 210, 140, 17, 4},  // several blocks of queries, parts of dq
};

std::vector<Tensor> masks(const Sizes& z) {
  const Tensor noise = random_tensor({z.b, 1, z.t, z.s}, 64, DType::f64, -1, 1);
  return {Tensor{}, noise > -0.5, random_tensor({z.s}, 65, DType::f64, -1, 1) > -0.5,
          where(noise > 0.8, -kInf, noise).detach(),
          random_tensor({z.h, 1, z.s}, 66, DType::f64, -1, 1)};
}

Tensor lengths_of(const Sizes& z) {
  std::vector<int32_t> lengths;
  for (int64_t b = 0; b < z.b; ++b) lengths.push_back(int32_t(z.s * (b + 2) / 4));
  return tensor(lengths);
}

TEST(AttentionKernel, EveryCombinationOfRestrictions) {
  for (const Sizes& z : kSizes) {
    const Tensors x = operands(z, DType::f64);
    const std::vector<Tensor> all = masks(z);
    for (size_t mask = 0; mask < all.size(); ++mask) {
      for (const bool causal : {false, true}) {
        for (const bool limited : {false, true}) {
          SCOPED_TRACE(cat("T ", z.t, " S ", z.s, " mask ", mask, causal ? " causal" : "",
                           limited ? " lengths" : ""));
          AttentionOptions options = {.causal = causal, .mask = all[mask]};
          if (limited) options.lengths = lengths_of(z);
          compare(x, options);
        }
      }
    }
  }
}

TEST(AttentionKernel, EveryFloatType) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    for (const Sizes& z : kSizes) {
      SCOPED_TRACE(cat(dtype, " T ", z.t, " S ", z.s));
      compare(operands(z, dtype), {.causal = true});
      compare(operands(z, dtype), {.mask = masks(z)[3], .scale = 0.1});
    }
  }
}

// Both draw from one stream, which the counter of a Random of the same seed starts.
TEST(AttentionKernel, DropoutDropsTheSameWeights) {
  const ModeGuard training(true);
  for (const DType dtype : {DType::f32, DType::f64}) {
    for (const Sizes& z : kSizes) {
      for (const bool causal : {false, true}) {
        SCOPED_TRACE(cat(dtype, " T ", z.t, " S ", z.s));
        const Tensors x = operands(z, dtype);
        const Random first(9), second(9);
        const std::vector<Array> actual =
            results(x, {.causal = causal, .dropout = 0.3, .random = &first});
        const WithoutKernels plain;
        expect_equal(actual, results(x, {.causal = causal, .dropout = 0.3, .random = &second}),
                     tolerance_of(dtype));
      }
    }
  }
}

// As Random::dropout on the weights would.
TEST(AttentionKernel, DropoutIsThatOfTheWeights) {
  const ModeGuard training(true);
  const Tensors x = operands({2, 3, 3, 20, 45, 8, 6}, DType::f64);
  const Random first(5), second(5);
  const Tensor y = attention(x[0], x[1], x[2], {.scale = 0.5, .dropout = 0.4, .random = &first});
  const Tensor weights = second.dropout(softmax(matmul(x[0] * 0.5, transpose(x[1]))), 0.4);
  expect_near(y, to_doubles(matmul(weights, x[2])));
  EXPECT_EQ(first.counter().value().item(), second.counter().value().item());
}

// q, k and v as a linear layer gives them side by side: read where they lie.
TEST(AttentionKernel, PackedProjectionsAreNotCopied) {
  const int64_t b = 2, t = 40, h = 3, d = 16;
  const Tensor packed = random_tensor({b, t, 3, h, d}, 67);
  const auto parts = [&](const Tensor& x) {
    Tensors result;
    for (int64_t i = 0; i < 3; ++i) {
      const Tensor part = reshape(slice(x, 2, i, i + 1), {b, t, h, d});
      result.push_back(permute(part, {0, 2, 1, 3}));
    }
    return result;
  };
  auto step = compile([&](const Tensor& x) {
    const Tensors qkv = parts(x);
    return attention(qkv[0], qkv[1], qkv[2], {.causal = true});
  });
  const Tensor y = step(packed);
  EXPECT_EQ(step.program().report.copies, 0);
  EXPECT_EQ(step.program().report.kernels, 1);
  compare(parts(packed), {.causal = true});
  // Strided along the channels, and rows a page apart.
  const Tensor wide = random_tensor({1, 2, 50, 1024}, 68);
  const Tensor stepped = slice(wide, 3, 0, 30, 2), paged = slice(wide, 3, 0, 16);
  compare({paged, paged, paged}, {.causal = true});
  compare({stepped, flip(stepped, {2}), flip(stepped, {3})}, {.causal = true});
}

// A training step over T x T scores needs memory for T rows.
TEST(AttentionKernel, MemoryGrowsWithTheLengthAlone) {
  const int64_t t = 2048, d = 32;
  auto step = compile([&](const Tensor& q, const Tensor& k, const Tensor& v) {
    const Tensor y = attention(q, k, v, {.causal = true});
    return grad(sum(y * y), Tensors{q, k, v});
  });
  const Tensors x = operands({1, 1, 1, t, t, d, d}, DType::f32);
  step(x[0], x[1], x[2]);
  EXPECT_LE(step.program().report.temporary_bytes, 6 * t * d * 4);
  EXPECT_LT(step.program().report.temporary_bytes * 8, t * t * 4);
}

// A position that is not seen adds nothing, whatever it holds.
TEST(AttentionKernel, WhatLiesBeyondTheLengthIsNotRead) {
  const Sizes z = {1, 2, 1, 3, 40, 4, 4};
  Tensors x = operands(z, DType::f64);
  const std::vector<Array> expected = results(x, {.lengths = tensor<int64_t>({21})});
  for (size_t i : {1, 2}) {
    const Tensor place = reshape(arange(z.s), {1, 1, z.s, 1});
    x[i] = where(place >= 21, std::nan(""), x[i]).detach();
  }
  const std::vector<Array> actual = results(x, {.lengths = tensor<int64_t>({21})});
  expect_equal(actual, expected, 0);
}

// NaN stays in the rows that see it.
TEST(AttentionKernel, NaNReachesTheRowsThatSeeIt) {
  const Sizes z = {1, 1, 1, 40, 40, 4, 4};
  Tensors x = operands(z, DType::f32);
  const Tensor place = reshape(arange(z.t), {1, 1, z.t, 1});
  x[0] = where(place == 35, std::nan(""), x[0]).detach();
  const Array y = read_array(attention(x[0], x[1], x[2], {.causal = true}));
  for (size_t i = 0; i < y.real.size(); ++i) EXPECT_EQ(std::isnan(y.real[i]), i / 4 == 35) << i;
  x = operands(z, DType::f32);
  x[1] = where(place == 35, std::nan(""), x[1]).detach();
  const Array z_ = read_array(attention(x[0], x[1], x[2], {.causal = true}));
  for (size_t i = 0; i < z_.real.size(); ++i) EXPECT_EQ(std::isnan(z_.real[i]), i / 4 >= 35) << i;
}

// Few queries take another path, where the last key decides.
TEST(AttentionKernel, NaNInTheLastKeyReachesEveryGradient) {
  for (const int64_t queries : {3, 40}) {
    const Tensor q = ones({1, 1, queries, 4}).detach(), v = ones({1, 1, 4, 2}).detach();
    const Tensor place = reshape(iota({4}, 0), {1, 1, 4, 1});
    const Tensor k =
        broadcast_to(where(place == 3, std::nan(""), ones({1})), {1, 1, 4, 4}).detach();
    for (const Tensor& g : grad(sum(attention(q, k, v)), {q, k, v})) {
      for (const float x : g.to_vector<float>()) EXPECT_TRUE(std::isnan(x)) << queries;
    }
  }
}

}  // namespace
}  // namespace tessera
