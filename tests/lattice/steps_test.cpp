#include "tessera/lattice/steps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "lattice_data.h"
#include "tessera/base/error.h"

namespace tessera::lattice {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double plain_distance(const float* a, const float* b, int64_t dim) {
  double sum = 0;
  for (int64_t p = 0; p < dim; ++p) sum += std::pow(double(a[p]) - double(b[p]), 2);
  return sum;
}

struct Case {
  int64_t n, dim, m;
  std::vector<float> data = normal_points(n, dim, 1);
  std::vector<float> anchors = normal_points(m, dim, 2);
  Assignment assignment{n};
  CellOrder order = {};

  Points points() const { return {data, dim}; }
  AssignResult run() {
    const AssignResult result = assign(points(), anchors, assignment);
    sort_by_cell(assignment.cells, m, order);
    return result;
  }
};

TEST(Steps, AssignGivesCellsEnergyAndWhatMoved) {
  Case c{500, 9, 12};
  const AssignResult first = c.run();
  EXPECT_EQ(first.moved, 500);
  double energy = 0;
  for (int64_t i = 0; i < c.n; ++i) {
    double nearest = kInfinity;
    for (int64_t j = 0; j < c.m; ++j) {
      const double distance =
          plain_distance(c.points().row(i), &c.anchors[size_t(j * c.dim)], c.dim);
      if (distance >= nearest) continue;
      nearest = distance;
      if (c.assignment.cells[size_t(i)] == j) {
        EXPECT_NEAR(double(c.assignment.distances[size_t(i)]), distance, 1e-5 * distance);
      }
    }
    EXPECT_NEAR(double(c.assignment.distances[size_t(i)]), nearest, 1e-5 * nearest);
    energy += nearest / double(c.n);
  }
  EXPECT_NEAR(first.energy, energy, 1e-5 * energy);
  EXPECT_EQ(c.run().moved, 0);
  const std::vector<int32_t> before = c.assignment.cells;
  for (float& x : c.anchors) x = -x;
  int64_t moved = 0;
  const AssignResult again = c.run();
  for (size_t i = 0; i < before.size(); ++i) moved += before[i] != c.assignment.cells[i];
  EXPECT_GT(moved, 0);
  EXPECT_EQ(again.moved, moved);
}

TEST(Steps, SortByCellKeepsTheOrderOfRows) {
  const std::vector<int32_t> cells = {2, 0, 2, 4, 0, 2};
  CellOrder order;
  sort_by_cell(cells, 5, order);
  EXPECT_EQ(order.begin, (std::vector<int64_t>{0, 2, 2, 5, 5, 6}));
  EXPECT_EQ(order.rows, (std::vector<int64_t>{1, 4, 0, 2, 5, 3}));
  EXPECT_EQ(order.size(2), 3);
  EXPECT_EQ(order.size(3), 0);
}

// Sorts each cell by distance and row, cuts both ends, weighs and divides.
std::vector<float> plain_robust_means(const Case& c, double trim, double huber) {
  std::vector<float> means = c.anchors;
  for (int64_t j = 0; j < c.m; ++j) {
    std::vector<std::pair<float, int64_t>> rows;
    for (int64_t i = 0; i < c.n; ++i) {
      if (c.assignment.cells[size_t(i)] == j)
        rows.push_back({c.assignment.distances[size_t(i)], i});
    }
    if (rows.empty()) continue;
    std::ranges::sort(rows);
    const auto cut = size_t(std::floor(trim * double(rows.size())));
    std::vector<double> sum(static_cast<size_t>(c.dim));
    double weights = 0;
    for (size_t k = cut; k < rows.size() - cut; ++k) {
      const double distance = std::sqrt(double(rows[k].first));
      const double weight = distance > huber ? huber / distance : 1;
      weights += weight;
      for (int64_t p = 0; p < c.dim; ++p) {
        sum[size_t(p)] += weight * double(c.points().row(rows[k].second)[p]);
      }
    }
    for (int64_t p = 0; p < c.dim; ++p) {
      means[size_t(j * c.dim + p)] = float(sum[size_t(p)] / weights);
    }
  }
  return means;
}

void expect_near(const std::vector<float>& got, const std::vector<float>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-5f) << "at " << i;
}

TEST(Steps, MeansAreThoseOfTheFormula) {
  Case c{700, 11, 9};
  // A cell that nobody is near.
  std::fill_n(c.anchors.begin(), c.dim, 100.0f);
  c.run();
  ASSERT_EQ(c.order.size(0), 0);
  std::vector<float> means = c.anchors;
  plain_means(c.points(), c.order, means);
  expect_near(means, plain_robust_means(c, 0, kInfinity));
  for (const double trim : {0.0, 0.1, 0.25, 0.49}) {
    for (const double huber : {kInfinity, 3.0, 1.0, 0.01}) {
      SCOPED_TRACE(cat("trim ", trim, ", huber ", huber));
      means = c.anchors;
      robust_means(c.points(), c.assignment, c.order, {trim, huber}, means);
      expect_near(means, plain_robust_means(c, trim, huber));
    }
  }
}

TEST(Steps, MeansOfLargeCellsDoNotDrift) {
  const int64_t n = 300000;
  std::vector<float> data(static_cast<size_t>(n), 0.1f);
  Assignment assignment(n);
  CellOrder order;
  assign({data, 1}, std::vector<float>{0}, assignment);
  sort_by_cell(assignment.cells, 1, order);
  std::vector<float> mean(1);
  plain_means({data, 1}, order, mean);
  EXPECT_FLOAT_EQ(mean[0], 0.1f);
}

TEST(Steps, RobustMeansIgnoreOutliers) {
  std::vector<float> data;
  for (int i = 0; i < 100; ++i) data.push_back(float(i % 10) / 10);
  data.push_back(1e6f);
  Assignment assignment(101);
  CellOrder order;
  assign({data, 1}, std::vector<float>{0.45f}, assignment);
  sort_by_cell(assignment.cells, 1, order);
  std::vector<float> mean(1);
  plain_means({data, 1}, order, mean);
  EXPECT_GT(mean[0], 9000);
  robust_means({data, 1}, assignment, order, {0.02, kInfinity}, mean);
  EXPECT_NEAR(mean[0], 0.45f, 0.05f);
  robust_means({data, 1}, assignment, order, {0, 0.5}, mean);
  EXPECT_NEAR(mean[0], 0.45f, 0.05f);
}

TEST(Steps, UpdateIsClampedAndHasMomentum) {
  const std::vector<float> means = {10, -10, 0.5f};
  std::vector<float> anchors = {0, 0, 0}, velocity = {1, 1, 1};
  update(means, {0.5, 2, 0.9}, velocity, anchors);
  EXPECT_EQ(velocity, (std::vector<float>{2.9f, -1.1f, 1.15f}));
  EXPECT_EQ(anchors, velocity);
  update(means, {0.5, kInfinity, 0}, velocity, anchors);
  EXPECT_FLOAT_EQ(velocity[0], 0.5f * (10 - 2.9f));
  EXPECT_FLOAT_EQ(anchors[0], 2.9f + 0.5f * (10 - 2.9f));
}

TEST(Steps, EmptyCellsAreSeededAtFarPoints) {
  // Cell 0 has the larger sum, cell 2 the next; cells 1 and 3 and 4 are empty.
  const std::vector<float> data = {0, 1, 5, 20, 22, 20};
  std::vector<float> anchors = {0, 1000, 20, 1000, 1000};
  Assignment assignment(6);
  CellOrder order;
  const Points points = {data, 1};
  const double before = assign(points, anchors, assignment).energy;
  sort_by_cell(assignment.cells, 5, order);
  EXPECT_EQ(reseed_empty(points, assignment, order, anchors), 2);
  EXPECT_EQ(anchors, (std::vector<float>{0, 5, 20, 22, 1000}));
  EXPECT_LT(assign(points, anchors, assignment).energy, before);
  // Nothing is far from anything.
  std::vector<float> same(6, 3), three = {3, 3, 3};
  assign({same, 1}, three, assignment);
  sort_by_cell(assignment.cells, 3, order);
  EXPECT_EQ(reseed_empty({same, 1}, assignment, order, three), 0);
}

}  // namespace
}  // namespace tessera::lattice
