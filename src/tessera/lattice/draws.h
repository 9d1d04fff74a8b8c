// Random numbers one after the other, by seed and by what they are for.
#pragma once

#include <cstdint>

#include "tessera/base/philox.h"

namespace tessera::lattice {

class Draws {
 public:
  enum class Purpose : uint64_t { sample = 1, seeding, seeding_sample, batch };

  Draws(uint64_t seed, Purpose purpose) : seed_(seed), stream_(uint64_t(purpose)) {}

  double unit() {  // in [0, 1), a multiple of 2^-53
    const auto bits = philox(seed_, next_++, stream_);
    return double((uint64_t(bits[0]) << 32 | bits[1]) >> 11) * 0x1p-53;
  }
  // In [0, n). REQUIRES: 1 <= n <= 2^53.
  int64_t below(int64_t n) {
    const auto i = int64_t(unit() * double(n));
    return i < n ? i : n - 1;  // the product may round up
  }

 private:
  uint64_t seed_, stream_, next_ = 0;
};

}  // namespace tessera::lattice
