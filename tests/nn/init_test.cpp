#include "tessera/nn/init.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "support/expect_error.h"
#include "tessera/tensor/ops.h"

namespace tessera {
namespace {

struct Spread {
  double low, high, mean, deviation;
};

Spread spread_of(const Init& init, const Shape& shape) {
  const std::vector<float> values = init(Random(11), shape).to_vector<float>();
  Spread s{*std::ranges::min_element(values), *std::ranges::max_element(values), 0, 0};
  for (const float value : values) s.mean += value / double(values.size());
  for (const float value : values) s.deviation += std::pow(value - s.mean, 2);
  s.deviation = std::sqrt(s.deviation / double(values.size()));
  return s;
}

void expect_uniform(const Init& init, const Shape& shape, double bound) {
  const Spread s = spread_of(init, shape);
  EXPECT_GE(s.low, -bound * 1.000001);
  EXPECT_LE(s.high, bound * 1.000001);
  EXPECT_NEAR(s.mean, 0, 0.03 * bound);
  EXPECT_NEAR(s.deviation, bound / std::sqrt(3), 0.02 * bound);
}

TEST(Inits, HaveTheirSpread) {
  expect_uniform(uniform_init(-0.5, 0.5), {100, 50}, 0.5);
  expect_uniform(kaiming_uniform(), {100, 50}, std::sqrt(6.0 / 50));
  expect_uniform(kaiming_uniform(std::sqrt(5)), {100, 50}, std::sqrt(1.0 / 50));
  expect_uniform(xavier_uniform(), {100, 50}, std::sqrt(6.0 / 150));
  expect_uniform(xavier_uniform(2), {100, 50}, 2 * std::sqrt(6.0 / 150));
}

TEST(Inits, ExtentsBehindInCountForBothFans) {
  expect_uniform(kaiming_uniform(), {20, 10, 5, 5}, std::sqrt(6.0 / 250));
  expect_uniform(xavier_uniform(), {20, 10, 5, 5}, std::sqrt(6.0 / 750));
}

TEST(Inits, NormalHasMeanAndDeviation) {
  const Spread s = spread_of(normal_init(3, 0.5), {100, 100});
  EXPECT_NEAR(s.mean, 3, 0.02);
  EXPECT_NEAR(s.deviation, 0.5, 0.02);
}

void expect_normal(const Init& init, const Shape& shape, double deviation) {
  const Spread s = spread_of(init, shape);
  EXPECT_NEAR(s.mean, 0, 0.06 * deviation);
  EXPECT_NEAR(s.deviation, deviation, 0.04 * deviation);
  EXPECT_GT(s.high, 3 * deviation);  // not cut, as a uniform one would be
  EXPECT_LT(s.low, -3 * deviation);
}

// The deviations of torch.nn.init's documentation.
TEST(Inits, NormalOnesHaveTheirDeviation) {
  expect_normal(kaiming_normal(), {100, 50}, std::sqrt(2.0 / 50));
  expect_normal(kaiming_normal(0.5), {100, 50}, std::sqrt(2.0 / 1.25 / 50));
  expect_normal(kaiming_normal(0, Fan::out), {100, 50}, std::sqrt(2.0 / 100));
  expect_normal(xavier_normal(2), {100, 50}, 2 * std::sqrt(2.0 / 150));
  expect_uniform(kaiming_uniform(0, Fan::out), {100, 50}, std::sqrt(6.0 / 100));
}

// Between -1 and 2 deviations of the normal distribution: mean and deviation by the formulae of the
// truncated one, with φ(-1) = 0.24197, φ(2) = 0.05399 and Φ(2) - Φ(-1) = 0.81859.
TEST(Inits, TruncatedNormalIsCut) {
  const Spread s = spread_of(truncated_normal(1, 0.5, 0.5, 2), {200, 100});
  EXPECT_GE(s.low, 0.5);
  EXPECT_LE(s.high, 2);
  const double shift = (0.24197 - 0.05399) / 0.81859;
  const double variance = 1 + (-0.24197 - 2 * 0.05399) / 0.81859 - shift * shift;
  EXPECT_NEAR(s.mean, 1 + 0.5 * shift, 0.01);
  EXPECT_NEAR(s.deviation, 0.5 * std::sqrt(variance), 0.01);
}

// The product of the matrix with its transpose, whichever is smaller, is gain² on the diagonal.
void expect_orthogonal(const Shape& shape, double gain) {
  const Tensor w = orthogonal_init(gain)(Random(3), shape);
  ASSERT_EQ(w.shape(), shape);
  const Tensor m = cast(reshape(w, {shape[0], -1}), DType::f64);
  const bool wide = m.size(0) <= m.size(1);
  const Tensor product = wide ? matmul(m, transpose(m)) : matmul(transpose(m), m);
  const Tensor expected = gain * gain * eye(product.size(0), DType::f64);
  EXPECT_LT(max(abs(product - expected)).item(), 1e-6);
}

TEST(Inits, OrthogonalIsOrthogonal) {
  expect_orthogonal({8, 8}, 1);
  expect_orthogonal({5, 30}, 2);
  expect_orthogonal({30, 5}, 0.5);
  expect_orthogonal({6, 2, 3, 3}, 1);
}

TEST(Inits, ConstantIsConstant) {
  EXPECT_EQ(constant_init(0.25)(Random(1), {3}).to_vector<float>(), std::vector<float>(3, 0.25f));
}

TEST(Inits, ErrorsNameWhatIsWrong) {
  EXPECT_EQ(error_text([] { kaiming_uniform()(Random(1), {3}); }),
            "kaiming_uniform: expected the shape (out, in, …) of a weight, got (3,)");
  EXPECT_EQ(error_text([] {
              xavier_uniform()(Random(1), {3, 0});
            }),
            "xavier_uniform: expected the shape (out, in, …) of a weight, got (3, 0)");
  EXPECT_EQ(error_text([] { truncated_normal(0, 1, 5, 6); }),
            "truncated_normal: expected a deviation above 0 and an interval with at least 1 % of "
            "the distribution, got 1 and 5 … 6 around 0");
}

}  // namespace
}  // namespace tessera
