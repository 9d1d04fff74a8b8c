// A random orthonormal transform of d dimensions in O(d log d), the same for the same seed.
//
// Each of three rounds flips signs at random and applies a Walsh–Hadamard transform. That needs a
// power of two: with p the largest one up to d, it is applied to the first p dimensions, then to
// the last p (each orthonormal, and every dimension is in one of them), then dimensions i and
// i + d/2 are turned by 45 degrees, so that the two blocks mix however little they overlap.
#pragma once

#include <cstdint>
#include <vector>

#include "tessera/lattice/code_kernels.h"

namespace tessera::lattice {

class Rotation {
 public:
  Rotation(int32_t dim, int32_t padded_dim, uint64_t seed);

  // x: (padded_dim), zeros past dim, in place.
  void apply(float* x) const;
  void apply_inverse(float* x) const;

 private:
  RotationPlan plan() const;

  int32_t dim_, padded_dim_, block_;
  float scale_;               // of a block's transform
  std::vector<float> signs_;  // (rounds, padded_dim); times scale_ within the first block
};

}  // namespace tessera::lattice
