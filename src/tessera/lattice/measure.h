// How good an index is on the vectors it was made of.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/io/vector_file.h"
#include "tessera/lattice/vector_index.h"

namespace tessera::lattice {

// Queries and the distances of their true nearest neighbours.
struct GroundTruth {
  int64_t k = 0;
  std::vector<float> queries;  // (m, dim), prepared
  std::vector<int64_t> own;    // (m): rows that the queries are, to be left out; empty: none
  std::vector<float> nearest;  // (m, k), best first

  int64_t count() const { return k == 0 ? 0 : int64_t(nearest.size()) / k; }
};

// By brute force over the file, chunk by chunk of about `memory` bytes. With `queries`: (m, dim).
GroundTruth ground_truth(const VectorFile& data, Metric metric, std::span<const float> queries,
                         int64_t k, int64_t memory);
// With `count` rows of the file as queries, each left out of its own results.
GroundTruth sampled_truth(const VectorFile& data, Metric metric, int64_t count, int64_t k,
                          uint64_t seed, int64_t memory);

struct Measured {
  double recall = 0;         // @k, tie-aware
  double batch_qps = 0;      // all queries at once; 0 where own rows are left out
  double query_seconds = 0;  // the median of one at a time
};

// REQUIRES: k <= truth.k.
Measured measure(const VectorIndex& index, const VectorFile& data, const GroundTruth& truth,
                 int64_t k, int32_t nprobe);

// The fewest cells to look into for a recall@k of `target`.
int32_t nprobe_for(const VectorIndex& index, const VectorFile& data, const GroundTruth& truth,
                   int64_t k, double target);

}  // namespace tessera::lattice
