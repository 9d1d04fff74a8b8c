#include "tessera/base/philox.h"

#include <gtest/gtest.h>

#include <vector>

namespace tessera {
namespace {

using Block = std::array<uint32_t, 4>;

// The known answers that Random123 publishes for philox4x32-10.
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox(0, 0, 0), (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox(~uint64_t(0), ~uint64_t(0), ~uint64_t(0)),
            (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox(0x299f31d0a4093822, 0x85a308d3243f6a88, 0x0370734413198a2e),
            (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, UnitFloatCoversTheHalfOpenInterval) {
  EXPECT_EQ(unit_float(0), 0.0f);
  EXPECT_EQ(unit_float(0xffu), 0.0f);
  EXPECT_EQ(unit_float(0x80000000u), 0.5f);
  EXPECT_EQ(unit_float(~0u), 1.0f - 0x1p-24f);
}

TEST(Philox, StreamsAreLanesOfConsecutiveCounters) {
  const int64_t key = 42, offset = 1000;
  for (int64_t index = 0; index < 64; ++index) {
    const Block block = philox(uint64_t(key), uint64_t(offset + index / 4));
    EXPECT_EQ(philox_uniform(index, key, offset), unit_float(block[size_t(index % 4)]));
    // Element 4 of a stream is element 0 of the one that starts a counter later.
    EXPECT_EQ(philox_uniform(index + 4, key, offset), philox_uniform(index, key, offset + 1));
  }
  EXPECT_NE(philox_uniform(0, key, offset), philox_uniform(0, key + 1, offset));
}

// Chi-square of 1,048,576 draws over 256 bins: mean 255, and above 330 once in 1,000 seeds.
double chi_square(const std::vector<int>& counts, double expected) {
  double sum = 0;
  for (const int count : counts) sum += (count - expected) * (count - expected) / expected;
  return sum;
}

TEST(Philox, UniformIsUniform) {
  const int draws = 1 << 20, bins = 256;
  std::vector<int> counts(bins);
  double mean = 0;
  for (int i = 0; i < draws; ++i) {
    const float u = philox_uniform(i, 1234, 0);
    ASSERT_GE(u, 0.0f);
    ASSERT_LT(u, 1.0f);
    ++counts[size_t(u * bins)];
    mean += u;
  }
  EXPECT_LT(chi_square(counts, double(draws) / bins), 330);
  EXPECT_GT(chi_square(counts, double(draws) / bins), 185);  // too even is not random either
  EXPECT_NEAR(mean / draws, 0.5, 0.0012);                    // four standard errors
}

TEST(Philox, NeighboursAreIndependent) {
  const int pairs = 1 << 20, side = 16;
  std::vector<int> counts(side * side);
  for (int i = 0; i < pairs; ++i) {
    const int row = int(philox_uniform(2 * i, 99, 7) * side);
    const int column = int(philox_uniform(2 * i + 1, 99, 7) * side);
    ++counts[size_t(row * side + column)];
  }
  EXPECT_LT(chi_square(counts, double(pairs) / (side * side)), 330);
}

}  // namespace
}  // namespace tessera
