#include "tessera/lattice/recall.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tessera/base/error.h"
#include "tessera/base/thread_pool.h"
#include "tessera/lattice/estimate.h"
#include "tessera/lattice/nearest.h"

namespace tessera::lattice {

namespace {

// Rows scaled to length 1; those of length 0 stay.
std::vector<float> unit_rows(std::span<const float> rows, int64_t dim) {
  std::vector<float> result(rows.begin(), rows.end());
  thread_pool().parallel_for(int64_t(rows.size()) / dim, 256, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const auto row = std::span(result).subspan(size_t(i * dim), size_t(dim));
      const float length = std::sqrt(true_distance(Metric::inner_product, row, row));
      for (float& x : row) x = length > 0 ? x / length : x;
    }
  });
  return result;
}

}  // namespace

std::vector<float> true_nearest(Metric metric, int64_t dim, std::span<const float> points,
                                std::span<const float> queries, int64_t k) {
  const int64_t n = int64_t(points.size()) / dim, m = int64_t(queries.size()) / dim;
  TESSERA_ASSERT(k >= 1 && k <= n);
  if (metric == Metric::cosine) {
    return true_nearest(Metric::inner_product, dim, unit_rows(points, dim), unit_rows(queries, dim),
                        k);
  }
  std::vector<int32_t> rows(size_t(m * k));
  std::vector<float> result(size_t(m * k));
  NearestAnchors(points, dim, metric).find_few(queries, k, rows, result);
  return result;
}

double recall(Metric metric, int64_t k, std::span<const float> found,
              std::span<const float> nearest, int64_t width) {
  const int64_t m = int64_t(found.size()) / k;
  TESSERA_ASSERT(k <= width && int64_t(nearest.size()) == m * width);
  int64_t hits = 0;
  for (int64_t q = 0; q < m; ++q) {
    const float last = key_of(metric, nearest[size_t(q * width + k - 1)]);
    const float limit = last + 1e-3f * std::fabs(last);
    for (int64_t i = 0; i < k; ++i) {
      if (key_of(metric, found[size_t(q * k + i)]) <= limit) ++hits;
    }
  }
  return m == 0 ? 1 : double(hits) / double(m * k);
}

std::vector<float> true_distances(Metric metric, int64_t dim, std::span<const float> queries,
                                  std::span<const int64_t> ids, const Originals& original) {
  const size_t m = queries.size() / size_t(dim), k = m == 0 ? 0 : ids.size() / m;
  std::vector<float> result(ids.size(), std::numeric_limits<float>::quiet_NaN());
  std::vector<float> x(static_cast<size_t>(dim));
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0) continue;
    original(ids[i], x);
    result[i] = true_distance(metric, queries.subspan(i / k * size_t(dim), size_t(dim)), x);
  }
  return result;
}

int32_t pick_nprobe(double target, int32_t cells, int64_t queries, int64_t k,
                    const std::function<double(int32_t nprobe)>& measure) {
  if (!(target > 0 && target <= 1)) fail("recall: expected a target from 0 to 1, got ", target);
  if (queries < 1) fail("recall: expected held-out queries to pick nprobe by, got none");
  const double error = std::sqrt(target * (1 - target) / double(queries * k));
  const double wanted = std::min(target + error, 1.0);
  std::vector<int32_t> ladder;
  for (int32_t p = 1; p < cells; p *= 2) {
    ladder.push_back(p);
    if (p >= 2 && p + p / 2 < cells) ladder.push_back(p + p / 2);
  }
  ladder.push_back(cells);
  // Recall grows with nprobe: bisect.
  size_t low = 0, high = ladder.size() - 1;
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (measure(ladder[middle]) >= wanted) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return ladder[low];
}

double search_recall(const Searcher& searcher, int32_t nprobe, std::span<const float> queries,
                     std::span<const float> nearest, int64_t k, const Originals& original) {
  const Metric metric = searcher.index().metric;
  const int64_t dim = searcher.index().coder->spec().dim;
  const SearchResult found = searcher.search(queries, {.k = k, .nprobe = nprobe});
  return recall(metric, k, true_distances(metric, dim, queries, found.ids, original), nearest, k);
}

int32_t pick_nprobe(const Searcher& searcher, double target, std::span<const float> queries,
                    std::span<const float> nearest, int64_t k, const Originals& original) {
  const int64_t count = int64_t(queries.size()) / searcher.index().coder->spec().dim;
  return pick_nprobe(target, searcher.index().cells(), count, k, [&](int32_t nprobe) {
    return search_recall(searcher, nprobe, queries, nearest, k, original);
  });
}

}  // namespace tessera::lattice
