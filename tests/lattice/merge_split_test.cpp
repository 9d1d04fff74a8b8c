#include "tessera/lattice/merge_split.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "lattice_data.h"

namespace tessera::lattice {
namespace {

struct Setting {
  std::vector<float> data;
  int64_t dim;
  MovingAnchors anchors;
  Assignment assignment{int64_t(data.size()) / dim};

  MergeSplitResult run(const MergeSplitRule& rule) {
    const Points points = {data, dim};
    anchors.velocity.assign(anchors.data.size(), 1.0f);
    assign(points, anchors.data, assignment);
    CellOrder order;
    sort_by_cell(assignment.cells, int64_t(anchors.data.size()) / dim, order);
    return merge_and_split(points, order, rule, assignment, anchors);
  }
};

constexpr double kNever = 1e30;

TEST(MergeSplit, MergesByTheSizesOfTheCells) {
  // Nearest others: 0.5, 0.5, 9.5, 90; the mean spacing is 25.125.
  Setting s{{-0.1f, 0, 0.1f, 0.5f, 10, 100}, 1, {{0, 0.5f, 10, 100}, {}}};
  const MergeSplitResult result = s.run({0.1, kNever, 1, 4});
  EXPECT_EQ(result.merged, 1);
  EXPECT_EQ(result.split, 0);
  EXPECT_EQ(s.anchors.data, (std::vector<float>{0.125f, 10, 100}));  // 3 points and 1
  EXPECT_EQ(s.anchors.velocity, (std::vector<float>{0, 1, 1}));
  EXPECT_EQ(s.assignment.cells, (std::vector<int32_t>{0, 0, 0, -1, 1, 2}));
}

TEST(MergeSplit, DistancesAboveTheFractionStay) {
  Setting s{{0, 0.5f, 10, 100}, 1, {{0, 0.5f, 10, 100}, {}}};
  EXPECT_EQ(s.run({0.01, kNever, 1, 4}).merged, 0);
  EXPECT_EQ(s.anchors.data.size(), 4u);
}

// Half of the points lie at ±1 of 0 in the first coordinate, and nearly nowhere in the second.
TEST(MergeSplit, SplitsAlongTheLargestVariance) {
  Setting s{{1, 0.1f, -1, 0.1f, 1, -0.1f, -1, -0.1f, 50, 0, 50, 0}, 2, {{0, 0, 50, 0}, {}}};
  const MergeSplitResult result = s.run({0, 0.5, 1, 3});
  EXPECT_EQ(result.split, 1);
  ASSERT_EQ(s.anchors.data.size(), 6u);
  EXPECT_NEAR(std::abs(s.anchors.data[0]), 0.8f, 1e-3f);
  EXPECT_NEAR(s.anchors.data[1], 0, 1e-2f);
  EXPECT_NEAR(s.anchors.data[4], -s.anchors.data[0], 1e-6f);
  EXPECT_EQ(s.anchors.velocity, (std::vector<float>{0, 0, 1, 1, 0, 0}));
}

TEST(MergeSplit, SplitsWhatIsCrowdedOrWideOnlyUpToTheMost) {
  // 20 points in 4 cells: more than 2 * 20 / 4 = 10 is crowded.
  std::vector<float> data;
  for (int i = 0; i < 12; ++i) data.push_back(float(i) * 0.01f);
  for (int i = 0; i < 4; ++i) data.push_back(100 + float(i) * 0.01f);
  data.insert(data.end(), {197, 203, 300, 300});
  const MovingAnchors anchors = {{0.05f, 100, 200, 300}, {}};
  Setting crowded{data, 1, anchors};
  EXPECT_EQ(crowded.run({0, kNever, 4, 8}).split, 1);
  EXPECT_EQ(crowded.anchors.data.size(), 5u);
  Setting wide{data, 1, anchors};
  EXPECT_EQ(wide.run({0, 5, 4, 8}).split, 2);  // a variance of 9 as well
  Setting full{data, 1, anchors};
  EXPECT_EQ(full.run({0, 5, 4, 5}).split, 1);
  EXPECT_NEAR(std::abs(full.anchors.data[4] - 200), 0.8f * 3, 1e-4f);  // the larger sum of squares
}

TEST(MergeSplit, AMergedSlotIsSeededAgain) {
  Setting s{{-0.1f, 0, 0.1f, 0.5f, 9, 11, 100, 100}, 1, {{0, 0.5f, 10, 100}, {}}};
  const MergeSplitResult result = s.run({0.1, kNever, 4, 4});
  EXPECT_EQ(result.merged, 1);
  EXPECT_EQ(result.split, 1);
  ASSERT_EQ(s.anchors.data.size(), 4u);
  EXPECT_FLOAT_EQ(s.anchors.data[0], 0.125f);
  EXPECT_NEAR(std::abs(s.anchors.data[1] - 10), 0.8f, 1e-6f);
  EXPECT_NEAR(s.anchors.data[1] + s.anchors.data[2], 20, 1e-6f);
}

TEST(MergeSplit, NeverFallsBelowTheFewest) {
  // Every cell is one point: there is nothing to split for a merged slot.
  Setting s{{0, 0.5f, 10, 100}, 1, {{0, 0.5f, 10, 100}, {}}};
  EXPECT_EQ(s.run({1, kNever, 4, 4}).merged, 0);
  EXPECT_EQ(s.anchors.data.size(), 4u);
  for (const int64_t fewest : {5, 20, 40}) {
    const auto data = mixture(500, 3, 10, 5, 1);
    Setting many{data, 3, {std::vector<float>(data.begin(), data.begin() + 40 * 3), {}}};
    many.run({1, kNever, fewest, 60});
    EXPECT_GE(many.anchors.data.size(), size_t(fewest * 3));
    EXPECT_LE(many.anchors.data.size(), 60u * 3);
  }
}

TEST(MergeSplit, OneAnchorHasNoOther) {
  Setting s{{0, 1}, 1, {{0.5f}, {}}};
  const MergeSplitResult result = s.run({1, kNever, 1, 1});
  EXPECT_EQ(result.merged + result.split, 0);
}

}  // namespace
}  // namespace tessera::lattice
