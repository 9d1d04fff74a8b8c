#include "tessera/lattice/measure.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>

#include "tessera/lattice/points.h"
#include "tessera/lattice/recall.h"

namespace tessera::lattice {

namespace {

constexpr int64_t kCachedBytes = int64_t(4) << 20;

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// The k best distances of each query over the whole file, (m, k); bad ones where there are fewer.
std::vector<float> nearest_in(const VectorFile& data, Metric metric, std::span<const float> queries,
                              int64_t k, int64_t memory) {
  const auto dim = size_t(data.dim()), m = queries.size() / dim, wide = size_t(k);
  const bool falls = metric != Metric::l2;
  const float worst = falls ? -INFINITY : INFINITY;
  std::vector<float> best(m * wide, worst);
  // Points that stay in the caches while all queries go by.
  for_each_chunk(
      data, metric, std::min(memory, kCachedBytes), [&](int64_t, std::span<const float> rows) {
        const int64_t here = std::min<int64_t>(k, int64_t(rows.size() / dim));
        const std::vector<float> found = true_nearest(metric, data.dim(), rows, queries, here);
        std::vector<float> both(wide + size_t(here));
        for (size_t q = 0; q < m; ++q) {
          const auto mine = best.begin() + int64_t(q * wide);
          const auto theirs = found.begin() + int64_t(q) * here;
          const auto merge = [&](auto compare) {
            std::merge(mine, mine + k, theirs, theirs + here, both.begin(), compare);
          };
          falls ? merge(std::greater<>()) : merge(std::less<>());
          std::copy_n(both.begin(), k, mine);
        }
      });
  return best;
}

float own_distance(Metric metric, std::span<const float> query) {
  if (metric == Metric::l2) return 0;
  float sum = 0;
  for (const float x : query) sum += x * x;
  return sum;
}

Originals originals_of(const VectorFile& data, Metric metric) {
  return [&data, metric](int64_t id, std::span<float> to) {
    data.read(id, id + 1, to.data());
    prepare_points(metric, to, data.dim(), id);
  };
}

}  // namespace

GroundTruth ground_truth(const VectorFile& data, Metric metric, std::span<const float> queries,
                         int64_t k, int64_t memory) {
  GroundTruth truth;
  truth.k = std::min(k, data.rows());
  truth.queries.assign(queries.begin(), queries.end());
  prepare_points(metric, truth.queries, data.dim());
  truth.nearest = nearest_in(data, metric, truth.queries, truth.k, memory);
  return truth;
}

GroundTruth sampled_truth(const VectorFile& data, Metric metric, int64_t count, int64_t k,
                          uint64_t seed, int64_t memory) {
  GroundTruth truth;
  truth.k = std::min(k, data.rows() - 1);
  if (truth.k < 1) return {};
  truth.own = sample_rows(data.rows(), std::min(count, data.rows()), seed);
  truth.queries = read_points(data, metric, truth.own);
  const auto dim = size_t(data.dim()), wide = size_t(truth.k + 1);
  const std::vector<float> all = nearest_in(data, metric, truth.queries, truth.k + 1, memory);
  for (size_t q = 0; q < truth.own.size(); ++q) {
    const std::span<const float> query(&truth.queries[q * dim], dim);
    const float own = own_distance(metric, query);
    // The one that is nearest to what the row has with itself; the last where that is not there.
    const float* row = &all[q * wide];
    size_t at = 0;
    for (size_t i = 1; i < wide; ++i) {
      if (std::abs(row[i] - own) < std::abs(row[at] - own)) at = i;
    }
    const bool is_there = std::abs(row[at] - own) <= 1e-3f * std::max(1.f, std::abs(own));
    if (!is_there) at = wide - 1;
    for (size_t i = 0; i < wide; ++i) {
      if (i != at) truth.nearest.push_back(row[i]);
    }
  }
  return truth;
}

Measured measure(const VectorIndex& index, const VectorFile& data, const GroundTruth& truth,
                 int64_t k, int32_t nprobe) {
  const Metric metric = index.snapshot().info().metric;
  const auto dim = size_t(data.dim()), m = size_t(truth.count());
  Measured measured;
  QueryOptions options = {.k = k, .nprobe = nprobe};
  std::vector<int64_t> ids;
  std::vector<double> seconds;
  for (size_t q = 0; q < m; ++q) {
    if (!truth.own.empty()) options.deny = {truth.own[q]};
    const auto begin = std::chrono::steady_clock::now();
    const SearchResult found = index.search({&truth.queries[q * dim], dim}, options);
    seconds.push_back(seconds_since(begin));
    ids.insert(ids.end(), found.ids.begin(), found.ids.end());
  }
  std::sort(seconds.begin(), seconds.end());
  measured.query_seconds = m == 0 ? 0 : seconds[m / 2];
  if (truth.own.empty() && m > 0) {
    index.search(truth.queries, options);
    const auto begin = std::chrono::steady_clock::now();
    index.search(truth.queries, options);
    measured.batch_qps = double(m) / seconds_since(begin);
  }
  const std::vector<float> distances =
      true_distances(metric, data.dim(), truth.queries, ids, originals_of(data, metric));
  measured.recall = recall(metric, k, distances, truth.nearest, truth.k);
  return measured;
}

int32_t nprobe_for(const VectorIndex& index, const VectorFile& data, const GroundTruth& truth,
                   int64_t k, double target) {
  return pick_nprobe(target, index.snapshot().info().cells(), truth.count(), k,
                     [&](int32_t nprobe) { return measure(index, data, truth, k, nprobe).recall; });
}

}  // namespace tessera::lattice
