#include "tessera/bench/statistics.h"

#include <gtest/gtest.h>

namespace tessera::bench {
namespace {

TEST(Statistics, QuantilesInterpolate) {
  const std::vector<double> samples = {1, 2, 4, 8};
  EXPECT_EQ(quantile(samples, 0), 1);
  EXPECT_EQ(quantile(samples, 1), 8);
  EXPECT_EQ(quantile(samples, 0.5), 3);
  EXPECT_DOUBLE_EQ(quantile(samples, 0.9), 4 + 0.7 * 4);
  EXPECT_EQ(quantile({7}, 0.9), 7);
}

TEST(Statistics, SummarizesUnsortedSamples) {
  std::vector<double> samples;
  for (int i = 0; i <= 100; ++i) samples.push_back((i * 37 % 101) + 100);  // 100 … 200, mixed
  const Summary summary = summarize(samples, 8);
  EXPECT_EQ(summary.median, 150);
  EXPECT_DOUBLE_EQ(summary.p10, 110);
  EXPECT_DOUBLE_EQ(summary.p90, 190);
  EXPECT_EQ(summary.least, 100);
  EXPECT_EQ(summary.samples, 101);
  EXPECT_EQ(summary.batch, 8);
  EXPECT_DOUBLE_EQ(summary.spread(), 80.0 / 150);
  EXPECT_TRUE(summary.is_noisy());
}

TEST(Statistics, FivePercentIsNotYetNoisy) {
  EXPECT_FALSE((Summary{1, 0.975, 1.02, 0.9, 30, 1}).is_noisy());
  EXPECT_TRUE((Summary{1, 0.975, 1.03, 0.9, 30, 1}).is_noisy());
}

}  // namespace
}  // namespace tessera::bench
