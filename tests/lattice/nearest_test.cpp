#include "tessera/lattice/nearest.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "emulated_amx.h"
#include "lattice_data.h"
#include "support/expect_error.h"
#include "tessera/lattice/nearest_kernels.h"

namespace tessera::lattice {
namespace {

// The definition, in plain steps: 16 sums, then halves added to halves.
float plain_value(const float* a, const float* b, int64_t dim, Metric metric) {
  std::array<float, 16> sums = {};
  for (int64_t p = 0; p < dim; ++p) {
    volatile float term = metric == Metric::l2 ? a[p] - b[p] : a[p];  // keeps products unfused
    volatile float product = term * (metric == Metric::l2 ? term : b[p]);
    sums[size_t(p % 16)] += product;
  }
  for (size_t width = 8; width > 0; width /= 2) {
    for (size_t l = 0; l < width; ++l) sums[l] += sums[l + width];
  }
  return sums[0];
}

struct Found {
  std::vector<int32_t> cells;
  std::vector<float> values;
  bool operator==(const Found&) const = default;
};

// Every anchor, sorted.
Found plain_few(const std::vector<float>& points, const std::vector<float>& anchors, int64_t dim,
                int64_t few, Metric metric) {
  const int64_t m = int64_t(anchors.size()) / dim;
  Found found;
  for (size_t at = 0; at < points.size(); at += size_t(dim)) {
    std::vector<std::pair<float, int32_t>> all;
    for (int64_t j = 0; j < m; ++j) {
      const float value = plain_value(points.data() + at, anchors.data() + j * dim, dim, metric);
      all.push_back({metric == Metric::l2 ? value : -value, int32_t(j)});
    }
    std::ranges::sort(all);
    for (int64_t k = 0; k < few; ++k) {
      found.cells.push_back(all[size_t(k)].second);
      const float key = all[size_t(k)].first;
      found.values.push_back(metric == Metric::l2 ? key : -key);
    }
  }
  return found;
}

Found find(const NearestAnchors& nearest, const std::vector<float>& points) {
  const size_t n = points.size() / size_t(nearest.dim());
  Found found{std::vector<int32_t>(n), std::vector<float>(n)};
  nearest.find(points, found.cells, found.values);
  return found;
}

Found find_few(const NearestAnchors& nearest, const std::vector<float>& points, int64_t few) {
  const size_t n = points.size() / size_t(nearest.dim()) * size_t(few);
  Found found{std::vector<int32_t>(n), std::vector<float>(n)};
  nearest.find_few(points, few, found.cells, found.values);
  return found;
}

std::vector<const NearestKernel*> kernels() {
  const auto available = available_nearest_kernels();
  std::vector<const NearestKernel*> all(available.begin(), available.end());
  if (emulated_amx() != nullptr) all.push_back(emulated_amx());
  return all;
}

void expect_plain(const std::vector<float>& points, const std::vector<float>& anchors, int64_t dim,
                  Metric metric = Metric::l2) {
  const int64_t few = std::min<int64_t>(7, int64_t(anchors.size()) / dim);
  const Found one = plain_few(points, anchors, dim, 1, metric);
  const Found several = plain_few(points, anchors, dim, few, metric);
  for (const NearestKernel* kernel : kernels()) {
    SCOPED_TRACE(kernel->name);
    const NearestAnchors nearest(anchors, dim, metric, kernel);
    EXPECT_EQ(find(nearest, points), one);
    EXPECT_EQ(find_few(nearest, points, few), several);
  }
}

TEST(Nearest, IsThePlainSearchForEveryKernelAndShape) {
  for (const int64_t dim : {1, 2, 3, 15, 16, 17, 31, 33, 64, 100, 130}) {
    for (const int64_t m : {1, 2, 5, 31, 32, 33, 100}) {
      SCOPED_TRACE(cat("dim ", dim, ", anchors ", m));
      expect_plain(normal_points(101, dim, uint64_t(dim)), normal_points(m, dim, 99), dim);
    }
  }
}

// More panels than the second-level cache is given at a time.
TEST(Nearest, IsThePlainSearchAmongManyLongAnchors) {
  expect_plain(normal_points(70, 256, 1), normal_points(1100, 256, 2), 256);
}

TEST(Nearest, FindsTheLargestInnerProduct) {
  for (const Metric metric : {Metric::inner_product, Metric::cosine}) {
    expect_plain(normal_points(200, 37, 1), normal_points(70, 37, 2), 37, metric);
  }
}

// Neighbouring anchors differ by less than bf16 can say, and some by less than f32 sums can.
TEST(Nearest, SettlesNearTiesAsTheExactDistanceDoes) {
  for (const float spread : {1.0f, 1e-2f, 1e-4f, 1e-6f}) {
    SCOPED_TRACE(cat("spread ", spread));
    const int64_t dim = 48;
    const std::vector<float> base = normal_points(1, dim, 3);
    std::vector<float> anchors = normal_points(300, dim, 4), points = normal_points(150, dim, 5);
    for (size_t i = 0; i < anchors.size(); ++i) {
      anchors[i] = base[i % size_t(dim)] + spread * anchors[i];
    }
    expect_plain(points, anchors, dim);
    expect_plain(points, anchors, dim, Metric::inner_product);
  }
}

TEST(Nearest, WorksFarFromTheOrigin) {
  const int64_t dim = 20;
  std::vector<float> anchors = normal_points(90, dim, 6), points = normal_points(90, dim, 7);
  for (float& x : anchors) x += 1000;
  for (float& x : points) x += 1000;
  expect_plain(points, anchors, dim);
}

TEST(Nearest, TakesTheFirstOfEqualAnchors) {
  const int64_t dim = 24;
  std::vector<float> anchors = normal_points(20, dim, 8);
  const std::vector<float> once = anchors;
  for (int i = 0; i < 4; ++i) anchors.insert(anchors.end(), once.begin(), once.end());
  expect_plain(normal_points(120, dim, 9), anchors, dim);
  const std::vector<float> same(size_t(70 * dim), 3.5f);
  expect_plain(same, same, dim);
}

TEST(Nearest, SurvivesScoresThatOverflow) {
  const int64_t dim = 5;
  std::vector<float> anchors = normal_points(40, dim, 10), points = normal_points(40, dim, 11);
  for (float& x : anchors) x *= 3e18f;
  for (float& x : points) x *= 3e18f;
  expect_plain(points, anchors, dim);
  for (float& x : anchors) x *= 1e16f;
  for (float& x : points) x *= 1e16f;
  expect_plain(points, anchors, dim);
}

TEST(Nearest, ChecksHowManyAreAskedFor) {
  const NearestAnchors nearest(normal_points(4, 3, 1), 3);
  std::vector<int32_t> cells(5);
  std::vector<float> values(5);
  const std::vector<float> point(3);
  EXPECT_EQ(error_text([&] { nearest.find_few(point, 5, cells, values); }),
            "nearest: expected 1 to 4 anchors to find, got 5");
  EXPECT_EQ(error_text([&] { nearest.find_few(point, 0, cells, values); }),
            "nearest: expected 1 to 4 anchors to find, got 0");
}

TEST(Nearest, AgreesOnRealDescriptors) {
  const auto sift = shared_vectors("sift10k_base.u8bin");
  if (!sift) GTEST_SKIP() << "no sift10k beside the repository";
  const int64_t dim = 128;
  const std::vector<float> points(sift->begin(), sift->begin() + 2000 * dim);
  const std::vector<float> anchors(sift->end() - 500 * dim, sift->end());
  expect_plain(points, anchors, dim);
}

}  // namespace
}  // namespace tessera::lattice
