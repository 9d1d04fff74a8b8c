// How good results are, and how many cells to look into for results that good.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "tessera/lattice/metric.h"
#include "tessera/lattice/search.h"

namespace tessera::lattice {

// Gives a vector (dim) by its id.
using Originals = std::function<void(int64_t id, std::span<float> vector)>;

// The k best true distances of each query, best first: all points are compared, by the exact search
// of nearest.h. points: (n, dim), queries: (m, dim), finite. Returns (m, k).
std::vector<float> true_nearest(Metric metric, int64_t dim, std::span<const float> points,
                                std::span<const float> queries, int64_t k);

// The share of results that belong to the true k best. Tie-aware: a result counts if its true
// distance is within a thousandth of the k-th best. found: true distances of what was found
// (m, k), NaN where nothing was; nearest: (m, at least k) with `width` a row.
double recall(Metric metric, int64_t k, std::span<const float> found,
              std::span<const float> nearest, int64_t width);

// True distances of found ids (m, k), for recall().
std::vector<float> true_distances(Metric metric, int64_t dim, std::span<const float> queries,
                                  std::span<const int64_t> ids, const Originals& original);

// The fewest cells to look into (of 1, 2, 3, 4, 6, 8, 12, 16, …, all) so that `measure` (the recall
// at an nprobe, over `queries` held-out queries) is at least `target` plus one standard error. All
// of them where no fewer do.
int32_t pick_nprobe(double target, int32_t cells, int64_t queries, int64_t k,
                    const std::function<double(int32_t nprobe)>& measure);

// The same for an index: recall@k of held-out queries (m, dim) whose true nearest (m, k) are known.
int32_t pick_nprobe(const Searcher& searcher, double target, std::span<const float> queries,
                    std::span<const float> nearest, int64_t k, const Originals& original);

// Recall@k of a search that looks into nprobe cells.
double search_recall(const Searcher& searcher, int32_t nprobe, std::span<const float> queries,
                     std::span<const float> nearest, int64_t k, const Originals& original);

}  // namespace tessera::lattice
