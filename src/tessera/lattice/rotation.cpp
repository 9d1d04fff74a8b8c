#include "tessera/lattice/rotation.h"

#include <bit>
#include <cmath>

#include "tessera/base/philox.h"

namespace tessera::lattice {

namespace {

constexpr int32_t kRounds = 3;

void hadamard(float* x, int32_t size, float scale) {
  for (int32_t h = 1; h < size; h *= 2) {
    for (int32_t i = 0; i < size; ++i) {
      if ((i & h) != 0) continue;
      const float a = x[i], b = x[i + h];
      x[i] = a + b;
      x[i + h] = a - b;
    }
  }
  for (int32_t i = 0; i < size; ++i) x[i] *= scale;
}

}  // namespace

Rotation::Rotation(int32_t dim, int32_t padded_dim, uint64_t seed)
    : dim_(dim),
      padded_dim_(padded_dim),
      block_(int32_t(std::bit_floor(uint32_t(dim)))),
      scale_(1 / std::sqrt(float(block_))),
      signs_(size_t(kRounds) * size_t(padded_dim)) {
  for (int32_t round = 0; round < kRounds; ++round) {
    for (int32_t i = 0; i < dim; ++i) {
      const uint32_t word = philox(seed, uint64_t(i), uint64_t(round))[0];
      const float sign = (word & 1) != 0 ? 1.f : -1.f;
      signs_[size_t(round * padded_dim + i)] = i < block_ ? sign * scale_ : sign;
    }
  }
}

RotationPlan Rotation::plan() const {
  return {dim_, padded_dim_, block_, kRounds, scale_, signs_.data()};
}

void Rotation::apply(float* x) const { code_kernels().rotate(plan(), x); }

// The steps are symmetric: the same ones in the opposite order.
void Rotation::apply_inverse(float* x) const {
  const int32_t half = dim_ / 2;
  for (int32_t round = kRounds - 1; round >= 0; --round) {
    if (block_ != dim_) {
      for (int32_t i = 0; i < half; ++i) {
        const float a = x[i], b = x[i + half];
        x[i] = (a + b) * std::sqrt(0.5f);
        x[i + half] = (a - b) * std::sqrt(0.5f);
      }
      hadamard(x + dim_ - block_, block_, scale_);
    }
    hadamard(x, block_, scale_);
    for (int32_t i = 0; i < dim_; ++i) {
      x[i] = std::copysign(x[i], x[i] * signs_[size_t(round * padded_dim_ + i)]);
    }
  }
}

}  // namespace tessera::lattice
