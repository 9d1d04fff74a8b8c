#include "tessera/lattice/anchors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "io/temp_folder.h"
#include "lattice_data.h"
#include "support/expect_error.h"
#include "tessera/base/thread_pool.h"
#include "tessera/io/npy.h"
#include "tessera/lattice/anneal.h"
#include "tessera/lattice/steps.h"

namespace tessera::lattice {
namespace {

constexpr Training kTrainings[] = {Training::anneal, Training::lloyd, Training::mini_batch};

AnchorOptions options_of(int64_t anchors, Training training = Training::lloyd) {
  AnchorOptions options;
  options.anchors = anchors;
  options.training = training;
  return options;
}

double energy_of(const std::vector<float>& points, int64_t dim, const std::vector<float>& anchors) {
  Assignment assignment(int64_t(points.size()) / dim);
  return assign({points, dim}, anchors, assignment).energy;
}

TEST(Anneal, CoolsByThreeSchedules) {
  AnchorOptions options;
  options.temperature = 3;
  options.cooling_rate = 0.2;
  double geometric = 3;
  for (int64_t t = 0; t < 10; ++t) {
    options.cooling = Cooling::geometric;
    EXPECT_NEAR(temperature_at(options, t), geometric, 1e-12);
    geometric *= 0.8;
    options.cooling = Cooling::exponential;
    EXPECT_NEAR(temperature_at(options, t), 3 * std::exp(-0.2 * double(t)), 1e-12);
    options.cooling = Cooling::inverse;
    EXPECT_NEAR(temperature_at(options, t), 3 / (1 + 0.2 * double(t)), 1e-12);
  }
  options.learning_rate = 0.5;
  EXPECT_NEAR(gain_at(options, 3), 0.375, 1e-12);
}

// Two iterations by the formulae, in f64 and in plain loops, from the seeds that training has with
// 0 iterations.
TEST(Anneal, IsTheFormulaStepByStep) {
  const int64_t n = 600, dim = 6, m = 8;
  const std::vector<float> points = mixture(n, dim, m, 4, 3);
  AnchorOptions options = options_of(m, Training::anneal);
  options.adjust_every = 0;
  options.momentum = 0.5;
  options.largest_step = 0.2;
  options.trim = 0.1;
  options.huber = 0.8;
  options.tolerance = 0;
  options.iterations = 0;
  const std::vector<float> seeds = train_anchors(points, dim, options).data;
  std::vector<double> anchors(seeds.begin(), seeds.end()), velocity(anchors.size());
  double unit = 0, temperature = options.temperature, energy = 0;
  for (int t = 0; t < 4; ++t, temperature *= 1 - options.cooling_rate) {
    std::vector<std::vector<std::pair<double, int64_t>>> cells(static_cast<size_t>(m));
    energy = 0;
    for (int64_t i = 0; i < n; ++i) {
      double nearest = 1e30;
      size_t cell = 0;
      for (int64_t j = 0; j < m; ++j) {
        double sum = 0;
        for (int64_t p = 0; p < dim; ++p) {
          sum += std::pow(double(points[size_t(i * dim + p)]) - anchors[size_t(j * dim + p)], 2);
        }
        if (sum >= nearest) continue;
        nearest = sum;
        cell = size_t(j);
      }
      cells[cell].push_back({std::sqrt(nearest), i});
      energy += nearest / double(n);
    }
    if (t == 0) unit = std::sqrt(energy);
    const double tau = options.huber * std::sqrt(temperature) * unit;
    for (size_t j = 0; j < cells.size(); ++j) {
      ASSERT_FALSE(cells[j].empty());
      std::ranges::sort(cells[j]);
      const auto cut = size_t(options.trim * double(cells[j].size()));
      for (int64_t p = 0; p < dim; ++p) {
        double sum = 0, weights = 0;
        for (size_t k = cut; k < cells[j].size() - cut; ++k) {
          const double weight = std::min(1.0, tau / cells[j][k].first);
          sum += weight * double(points[size_t(cells[j][k].second * dim + p)]);
          weights += weight;
        }
        const size_t at = j * size_t(dim) + size_t(p);
        const double gain = options.learning_rate * temperature / (1 + temperature);
        const double most = options.largest_step * unit;
        velocity[at] = options.momentum * velocity[at] +
                       std::clamp(gain * (sum / weights - anchors[at]), -most, most);
        anchors[at] += velocity[at];
      }
    }
  }
  options.iterations = 4;
  const TrainedAnchors trained = train_anchors(points, dim, options);
  ASSERT_EQ(trained.data.size(), anchors.size());
  for (size_t i = 0; i < anchors.size(); ++i) EXPECT_NEAR(trained.data[i], anchors[i], 1e-4);
  EXPECT_NEAR(trained.energy, energy, 1e-4 * energy);
}

TEST(Lloyd, TheEnergyNeverRises) {
  const std::vector<float> points = normal_points(3000, 10, 1);
  AnchorOptions options = options_of(40);
  options.tolerance = 0;
  options.iterations = 200;
  std::vector<double> energies;
  int64_t moved = -1;
  const TrainedAnchors trained = train_anchors(points, 10, options, [&](const TrainingProgress& p) {
    energies.push_back(p.energy);
    moved = p.moved;
    EXPECT_EQ(p.iteration, int64_t(energies.size()));
    EXPECT_EQ(p.anchors, 40);
    EXPECT_GT(p.points_per_second, 0);
    EXPECT_GE(p.assign_seconds, 0);
  });
  for (size_t i = 1; i < energies.size(); ++i) EXPECT_LE(energies[i], energies[i - 1] * (1 + 1e-7));
  EXPECT_LT(energies.back(), energies.front());
  EXPECT_TRUE(trained.converged);
  EXPECT_EQ(moved, 0);
  EXPECT_EQ(trained.iterations, int64_t(energies.size()));
}

TEST(Anchors, MixturesAreRecovered) {
  const int64_t dim = 16, clusters = 20;
  const std::vector<float> points = mixture(4000, dim, clusters, 20, 5);
  for (const Training training : kTrainings) {
    SCOPED_TRACE(int(training));
    const TrainedAnchors trained = train_anchors(points, dim, options_of(clusters, training));
    ASSERT_EQ(trained.count(), clusters);
    // The noise has a variance of 1 in each of 16 coordinates.
    EXPECT_NEAR(energy_of(points, dim, trained.data), 16, 0.5);
  }
}

TEST(Anchors, AnnealingGrowsAndShrinksWithinItsBounds) {
  const int64_t dim = 8;
  const std::vector<float> points = mixture(3000, dim, 30, 15, 6);
  AnchorOptions options = options_of(10, Training::anneal);
  options.most = 30;
  options.fewest = 10;
  options.temperature = 0.5;
  options.learning_rate = 2;
  options.tolerance = 0;
  options.iterations = 100;
  int64_t largest = 0;
  const TrainedAnchors grown = train_anchors(points, dim, options, [&](const TrainingProgress& p) {
    EXPECT_GE(p.anchors, 10);
    EXPECT_LE(p.anchors, 30);
    largest = std::max(largest, p.anchors);
  });
  EXPECT_EQ(largest, 30);
  EXPECT_LT(energy_of(points, dim, grown.data), 30);
  options = options_of(60, Training::anneal);
  options.fewest = 20;
  options.merge_closeness = 0.9;
  EXPECT_LT(train_anchors(points, dim, options).count(), 60);
}

TEST(Anchors, AreTheSameForASeedAndEveryNumberOfThreads) {
  const std::vector<float> points = normal_points(5000, 12, 2);
  for (const Training training : kTrainings) {
    SCOPED_TRACE(int(training));
    AnchorOptions options = options_of(64, training);
    options.iterations = 12;
    options.most = 80;
    const std::vector<float> expected = train_anchors(points, 12, options).data;
    EXPECT_EQ(train_anchors(points, 12, options).data, expected);
    // Inside a body of the pool everything runs in one thread.
    std::vector<float> alone;
    thread_pool().parallel_for(
        1, 1, [&](int64_t, int64_t) { alone = train_anchors(points, 12, options).data; });
    EXPECT_EQ(alone, expected);
    options.seed = 1;
    EXPECT_NE(train_anchors(points, 12, options).data, expected);
  }
}

TEST(Anchors, DegenerateDataIsNoTrouble) {
  std::vector<float> line;
  for (int i = 0; i < 200; ++i) line.push_back(float(i % 40));
  const std::vector<float> same(size_t(100 * 3), 7.0f);
  for (const Training training : kTrainings) {
    for (const Seeding seeding : {Seeding::plus_plus, Seeding::farthest_first}) {
      SCOPED_TRACE(cat(int(training), " ", int(seeding)));
      AnchorOptions options = options_of(40, training);
      options.seeding = seeding;
      EXPECT_EQ(energy_of(line, 1, train_anchors(line, 1, options).data), 0);  // d = 1, duplicates
      options.anchors = 100;
      const TrainedAnchors all_equal = train_anchors(same, 3, options);
      EXPECT_EQ(all_equal.count(), 100);
      EXPECT_EQ(all_equal.energy, 0);
      options.anchors = 1;
      const TrainedAnchors one = train_anchors(line, 1, options);
      EXPECT_NEAR(one.data[0], 19.5f, training == Training::mini_batch ? 1 : 0.5);
    }
  }
}

TEST(Anchors, AtAbsoluteZeroNothingMoves) {
  const std::vector<float> points = normal_points(300, 4, 8);
  AnchorOptions options = options_of(10, Training::anneal);
  options.cooling_rate = 1;
  options.adjust_every = 0;
  options.tolerance = 0;
  options.iterations = 1;
  const std::vector<float> after_one = train_anchors(points, 4, options).data;
  options.iterations = 6;
  EXPECT_EQ(train_anchors(points, 4, options).data, after_one);
}

TEST(Anchors, SeedsComeFromASampleOfLargeData) {
  const std::vector<float> points = mixture(20000, 4, 8, 30, 9);
  AnchorOptions options = options_of(8);
  options.seeding_points = 50;
  EXPECT_NEAR(energy_of(points, 4, train_anchors(points, 4, options).data), 4, 0.3);
}

TEST(Anchors, AnnealingIsAsGoodAsLloydOnRealData) {
  for (const auto& [file, dim] : {std::pair{"sift10k_base.u8bin", 128}, {"mnist10k.u8bin", 784}}) {
    auto points = shared_vectors(file);
    if (!points) {
      GTEST_SKIP() << "no " << file << " beside the repository";
    }
    const double lloyd = energy_of(*points, dim, train_anchors(*points, dim, options_of(100)).data);
    const double anneal = energy_of(
        *points, dim, train_anchors(*points, dim, options_of(100, Training::anneal)).data);
    std::printf("%s: energy %.6g by Lloyd, %.6g annealed\n", file, lloyd, anneal);
    EXPECT_LT(anneal, 1.02 * lloyd);
  }
}

TEST(Anchors, OptionsOutOfRangeAreRefused) {
  const std::vector<float> points(100);
  const auto refusal = [&](auto&& change) {
    AnchorOptions options = options_of(4);
    change(options);
    return error_text([&] { train_anchors(points, 1, options); });
  };
  EXPECT_EQ(refusal([](AnchorOptions& o) { o.anchors = 0; }),
            "anchors: expected anchors from 1 to 16777216, got 0");
  EXPECT_EQ(refusal([](AnchorOptions& o) { o.trim = 0.5; }),
            "anchors: expected trim from 0 to 0.49, got 0.5");
  EXPECT_EQ(refusal([](AnchorOptions& o) { o.temperature = 0; }),
            "anchors: expected temperature above 0 to inf, got 0");
  EXPECT_EQ(refusal([](AnchorOptions& o) { o.momentum = std::nan(""); }),
            "anchors: expected momentum from 0 to 0.99, got nan");
  EXPECT_EQ(refusal([](AnchorOptions& o) { o.most = 3; }),
            "anchors: expected most from 4 to 16777216, got 3");
  EXPECT_EQ(refusal([](AnchorOptions& o) { o.fewest = 5; }),
            "anchors: expected fewest from 1 to 4, got 5");
  EXPECT_EQ(refusal([](AnchorOptions& o) { o.anchors = 101; }),
            "anchors: expected at least one point for each of 101 anchors, got 100 points");
  const std::vector<float> large = {1, 2, 3, -1e16f};
  EXPECT_EQ(error_text([&] { train_anchors(large, 2, options_of(2)); }),
            "anchors: expected numbers of at most 1e+15 in size, got -1e+16 in row 1");
}

TEST(Anchors, AFileIsSampledToFitTheMemory) {
  const TempFolder folder;
  const int64_t n = 1000, dim = 4;
  const std::vector<float> points = mixture(n, dim, 5, 30, 4);
  const auto path = folder / "points.npy";
  write_npy(path, DType::f32, {n, dim}, std::as_bytes(std::span(points)));
  const VectorFile file = VectorFile::open(path);
  const AnchorOptions options = options_of(5);
  EXPECT_EQ(train_anchors(file, Metric::l2, options, 1 << 30).data,
            train_anchors(points, dim, options).data);
  const TrainedAnchors sampled = train_anchors(file, Metric::l2, options, 200 * 40);
  EXPECT_NEAR(energy_of(points, dim, sampled.data), 4, 0.5);
  EXPECT_EQ(error_text([&] { train_anchors(file, Metric::l2, options, 100); }),
            "anchors: expected memory for one point of each of 5 anchors (200 bytes), got 100");
}

}  // namespace
}  // namespace tessera::lattice
