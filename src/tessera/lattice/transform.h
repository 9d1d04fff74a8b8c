// Which transform suits the residuals of an index: a random rotation, or their principal axes with
// bits given to the groups of axes that vary most.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/lattice/code_spec.h"
#include "tessera/lattice/metric.h"

namespace tessera::lattice {

// What a choice is made on: a sample (n, dim) with its cells, and queries (m, dim) that are not in
// it. Vectors are scaled to length 1 already where the metric is cosine.
struct TransformSample {
  Metric metric = Metric::l2;
  int32_t dim = 0;
  std::span<const float> anchors;  // (cells, dim)
  std::span<const float> points;   // (n, dim)
  std::span<const int32_t> cells;  // (n)
  std::span<const float> queries;  // (m, dim)
  // Vectors of the index to be, which share the bytes of axes and diagonals; 0: so many that these
  // do not matter.
  int64_t rows = 0;
};

// Principal axes of the sample's residuals, `bits` · dim bits in all. Its codes need diagonals
// (train_diagonals of lists.h). Returns the rotation of `seed` for fewer points than dimensions.
CodeSpec pca_spec(const TransformSample& sample, int32_t bits, uint64_t seed);

// 10 log10 of the arithmetic over the geometric mean of the variances along the principal axes:
// what an ideal code would gain by knowing them, in dB.
double coding_gain(const TransformSample& sample);

struct TransformChoice {
  CodeSpec spec;
  std::vector<float> diagonals;                // (cells, dim), or empty
  double coding_gain = 0;                      // dB
  double rotation_recall = 0, pca_recall = 0;  // recall@10 within the sample; 0: not tried
};

// The rotation where the coding gain is below 1 dB; else whichever finds more of the queries' 10
// nearest in the sample, for its bytes: what the rotation misses is taken to be halved by each bit
// a dimension that the bytes of axes and diagonals would pay for, and axes must miss less than that
// by a standard error.
TransformChoice choose_transform(const TransformSample& sample, int32_t bits, uint64_t seed);

}  // namespace tessera::lattice
