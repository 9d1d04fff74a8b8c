// Philox4x32-10, the counter-based generator of Salmon et al. (SC 2011): a pure function of a key
// and a counter, so every backend and every thread count gives the same bits.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace tessera {

// The four 32-bit outputs for a 128-bit counter, given as two words, and a 64-bit key.
inline std::array<uint32_t, 4> philox(uint64_t key, uint64_t counter_low,
                                      uint64_t counter_high = 0) {
  uint32_t c0 = uint32_t(counter_low), c1 = uint32_t(counter_low >> 32);
  uint32_t c2 = uint32_t(counter_high), c3 = uint32_t(counter_high >> 32);
  uint32_t k0 = uint32_t(key), k1 = uint32_t(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t(0xD2511F53u) * c0;
    const uint64_t p1 = uint64_t(0xCD9E8D57u) * c2;
    c0 = uint32_t(p1 >> 32) ^ c1 ^ k0;
    c1 = uint32_t(p1);
    c2 = uint32_t(p0 >> 32) ^ c3 ^ k1;
    c3 = uint32_t(p0);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {c0, c1, c2, c3};
}

// 24 random bits as a float in [0, 1).
inline float unit_float(uint32_t bits) { return float(bits >> 8) * 0x1p-24f; }

// Element `index` of the stream (key, offset): lane index % 4 of counter offset + index / 4. A draw
// of n elements therefore uses up (n + 3) / 4 counters.
inline float philox_uniform(int64_t index, int64_t key, int64_t offset) {
  const uint64_t counter = uint64_t(offset) + (uint64_t(index) >> 2);
  return unit_float(philox(uint64_t(key), counter)[size_t(index & 3)]);
}

}  // namespace tessera
