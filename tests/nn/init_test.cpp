#include "tessera/nn/init.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "support/expect_error.h"

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
}

}  // namespace
}  // namespace tessera
