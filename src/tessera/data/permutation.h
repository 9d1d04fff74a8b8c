// A random order of [0, n) that needs no memory: where the k-th lies is computed.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "tessera/base/philox.h"

namespace tessera {

// A Feistel network over the next even power of two, whose round function is Philox; what falls
// outside [0, n) goes through it again, which stays a permutation and takes at most four passes
// on average.
class Permutation {
 public:
  // `stream` tells apart permutations of one seed. REQUIRES: 1 <= n <= 2^62.
  Permutation(int64_t n, uint64_t seed, uint64_t stream)
      : n_(uint64_t(n)),
        seed_(seed),
        stream_(stream),
        half_(std::max((int(std::bit_width(n_ - 1)) + 1) / 2, 1)) {}

  // REQUIRES: 0 <= index < n.
  int64_t operator()(int64_t index) const {
    uint64_t x = uint64_t(index);
    do {
      x = scramble(x);
    } while (x >= n_);
    return int64_t(x);
  }

 private:
  static constexpr uint64_t kRounds = 8;

  uint64_t scramble(uint64_t x) const {
    const uint64_t mask = (uint64_t(1) << half_) - 1;
    uint64_t left = x >> half_, right = x & mask;
    for (uint64_t round = 0; round < kRounds; ++round) {
      const uint64_t mixed = philox(seed_, right << 4 | round, stream_)[0] & mask;
      const uint64_t next = left ^ mixed;
      left = right;
      right = next;
    }
    return left << half_ | right;
  }

  uint64_t n_, seed_, stream_;
  int half_;  // bits
};

}  // namespace tessera
