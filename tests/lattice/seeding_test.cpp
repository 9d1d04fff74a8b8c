#include "tessera/lattice/seeding.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "lattice_data.h"

namespace tessera::lattice {
namespace {

double squared(const std::vector<float>& points, int64_t dim, int64_t a, int64_t b) {
  double sum = 0;
  for (int64_t p = 0; p < dim; ++p) {
    sum += std::pow(double(points[size_t(a * dim + p)]) - double(points[size_t(b * dim + p)]), 2);
  }
  return sum;
}

// What D² sampling gives to every sequence of rows.
void add_probabilities(const std::vector<float>& points, int64_t count, double probability,
                       std::vector<int64_t>& chosen,
                       std::map<std::vector<int64_t>, double>& result) {
  if (int64_t(chosen.size()) == count) {
    result[chosen] += probability;
    return;
  }
  const int64_t n = int64_t(points.size());
  std::vector<double> weights(static_cast<size_t>(n), 1.0);
  for (int64_t i = 0; i < n; ++i) {
    for (const int64_t c : chosen) {
      const double distance = squared(points, 1, i, c);
      weights[size_t(i)] = c == chosen.front() ? distance : std::min(weights[size_t(i)], distance);
    }
  }
  double total = 0;
  for (const double w : weights) total += w;
  for (int64_t i = 0; i < n; ++i) {
    if (weights[size_t(i)] == 0) continue;
    chosen.push_back(i);
    add_probabilities(points, count, probability * weights[size_t(i)] / total, chosen, result);
    chosen.pop_back();
  }
}

TEST(PlusPlus, DrawsEverySetWithItsProbability) {
  const std::vector<float> points = {0, 1, 3, 4.5f, 7, 7.5f, 12};
  const int64_t count = 4, seeds = 20000;
  std::map<std::vector<int64_t>, double> expected;
  std::vector<int64_t> chosen;
  add_probabilities(points, count, 1, chosen, expected);
  std::map<std::vector<int64_t>, double> seen;
  for (int64_t seed = 0; seed < seeds; ++seed) {
    seen[plus_plus(points, 1, count, uint64_t(seed))] += 1;
  }
  double chi = 0;
  int64_t cells = 0;
  double rest_expected = 0, rest_seen = 0;
  for (const auto& [rows, probability] : expected) {
    const double mean = probability * double(seeds);
    if (mean < 10) {
      rest_expected += mean;
      rest_seen += seen[rows];
      continue;
    }
    chi += std::pow(seen[rows] - mean, 2) / mean;
    ++cells;
  }
  chi += std::pow(rest_seen - rest_expected, 2) / std::max(rest_expected, 1.0);
  // Mean `cells`, variance twice that: five standard deviations.
  EXPECT_LT(chi, double(cells) + 5 * std::sqrt(2 * double(cells)));
  double all = 0;
  for (const auto& [rows, times] : seen) all += expected.contains(rows) ? times : 0;
  EXPECT_EQ(all, double(seeds));
}

// With many seeds, batches of old distances come into play: the marginal of the last of 12 seeds is
// compared with that of a plain, sequential sampler.
TEST(PlusPlus, LaterSeedsHaveThePlainDistribution) {
  const int64_t n = 16, dim = 2, count = 12, seeds = 10000;
  const std::vector<float> points = normal_points(n, dim, 5);
  std::mt19937_64 random(1);
  std::vector<double> ours(static_cast<size_t>(n)), plain(static_cast<size_t>(n));
  for (int64_t seed = 0; seed < seeds; ++seed) {
    ours[size_t(plus_plus(points, dim, count, uint64_t(seed)).back())] += 1;
    std::vector<double> weights(static_cast<size_t>(n), 1.0);
    int64_t row = 0;
    for (int64_t k = 0; k < count; ++k) {
      double total = 0;
      for (const double w : weights) total += w;
      double aim = total * std::uniform_real_distribution<double>()(random);
      for (row = 0; row < n - 1 && (aim -= weights[size_t(row)]) >= 0; ++row) {
      }
      for (int64_t i = 0; i < n; ++i) {
        const double distance = squared(points, dim, i, row);
        weights[size_t(i)] = k == 0 ? distance : std::min(weights[size_t(i)], distance);
      }
    }
    plain[size_t(row)] += 1;
  }
  for (size_t i = 0; i < ours.size(); ++i) {
    EXPECT_NEAR(ours[i], plain[i], 0.02 * double(seeds)) << "row " << i;
  }
}

TEST(PlusPlus, GivesDifferentRowsBySeed) {
  const std::vector<float> points = normal_points(3000, 8, 1);
  const auto rows = plus_plus(points, 8, 400, 7);
  EXPECT_EQ(std::set<int64_t>(rows.begin(), rows.end()).size(), 400u);
  EXPECT_EQ(plus_plus(points, 8, 400, 7), rows);
  EXPECT_NE(plus_plus(points, 8, 400, 8), rows);
}

TEST(PlusPlus, FindsAllDistinctPointsAmongDuplicates) {
  std::vector<float> points;
  for (int i = 0; i < 300; ++i) points.push_back(float(i % 3));
  const auto rows = plus_plus(points, 1, 40, 1);
  std::set<float> values;
  for (size_t i = 0; i < 3; ++i) values.insert(points[size_t(rows[i])]);
  EXPECT_EQ(values.size(), 3u);
  EXPECT_EQ(rows.size(), 40u);
  const std::vector<float> same(50, 2.5f);
  EXPECT_EQ(plus_plus(same, 1, 50, 3).size(), 50u);
}

TEST(FarthestFirst, IsThePlainMethod) {
  const int64_t n = 400, dim = 5, count = 60;
  const std::vector<float> points = normal_points(n, dim, 3);
  const auto rows = farthest_first(points, dim, count, 11);
  std::vector<int64_t> plain = {rows.front()};
  while (int64_t(plain.size()) < count) {
    int64_t farthest = 0;
    double most = -1;
    for (int64_t i = 0; i < n; ++i) {
      double nearest = 1e30;
      for (const int64_t c : plain) nearest = std::min(nearest, squared(points, dim, i, c));
      if (nearest <= most) continue;
      most = nearest;
      farthest = i;
    }
    plain.push_back(farthest);
  }
  EXPECT_EQ(rows, plain);
  EXPECT_EQ(farthest_first(points, dim, count, 11), rows);
}

TEST(FarthestFirst, TakesEveryRowOnceAmongDuplicates) {
  const std::vector<float> same(20, 1.0f);
  const auto rows = farthest_first(same, 1, 20, 2);
  EXPECT_EQ(std::set<int64_t>(rows.begin(), rows.end()).size(), 20u);
}

}  // namespace
}  // namespace tessera::lattice
