// The uniform op: Philox4x32-10 of base/philox.h, several counters side by side. Included by
// simd/loops.cpp.

inline constexpr int kCounters = 16;  // a block: 16 counters give 64 consecutive elements

// out[4 * k + lane] for counters first + k.
TESSERA_INLINE void philox_block(uint64_t key, uint64_t first, float* __restrict out) {
  uint32_t c0[kCounters], c1[kCounters], c2[kCounters], c3[kCounters];
  for (int k = 0; k < kCounters; ++k) {
    const uint64_t counter = first + uint64_t(k);
    c0[k] = uint32_t(counter);
    c1[k] = uint32_t(counter >> 32);
    c2[k] = 0;
    c3[k] = 0;
  }
  uint32_t k0 = uint32_t(key), k1 = uint32_t(key >> 32);
  for (int round = 0; round < 10; ++round) {
    for (int k = 0; k < kCounters; ++k) {
      const uint64_t p0 = uint64_t(0xD2511F53u) * c0[k];
      const uint64_t p1 = uint64_t(0xCD9E8D57u) * c2[k];
      c0[k] = uint32_t(p1 >> 32) ^ c1[k] ^ k0;
      c1[k] = uint32_t(p1);
      c2[k] = uint32_t(p0 >> 32) ^ c3[k] ^ k1;
      c3[k] = uint32_t(p0);
    }
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  for (int k = 0; k < kCounters; ++k) {
    out[4 * k + 0] = float(int32_t(c0[k] >> 8)) * 0x1p-24f;
    out[4 * k + 1] = float(int32_t(c1[k] >> 8)) * 0x1p-24f;
    out[4 * k + 2] = float(int32_t(c2[k] >> 8)) * 0x1p-24f;
    out[4 * k + 3] = float(int32_t(c3[k] >> 8)) * 0x1p-24f;
  }
}

TESSERA_INLINE bool consecutive(int64_t n, const int64_t* index) {
  uint64_t broken = 0;
  for (int64_t i = 1; i < n; ++i) broken |= uint64_t(index[i] - index[i - 1]) ^ 1u;
  return broken == 0;
}

// d[i] for indices first, first + 1, …: blocks that start at a multiple of 4.
void uniform_run(int64_t n, float* d, uint64_t first, uint64_t key, uint64_t offset) {
  float block[4 * kCounters];
  for (int64_t i = 0; i < n;) {
    const uint64_t index = first + uint64_t(i);
    const int64_t lane = int64_t(index & 3);
    philox_block(key, offset + (index >> 2), block);
    const int64_t count = n - i < 4 * kCounters - lane ? n - i : 4 * kCounters - lane;
    for (int64_t j = 0; j < count; ++j) d[i + j] = block[lane + j];
    i += count;
  }
}

void uniform_loop(int64_t n, void* d, const void* a, const void* b, const void* c,
                  unsigned scalars) {
  float* dp = static_cast<float*>(d);
  const int64_t* index = static_cast<const int64_t*>(a);
  const int64_t* key = static_cast<const int64_t*>(b);
  const int64_t* offset = static_cast<const int64_t*>(c);
  if (scalars == 6 && n > 0 && consecutive(n, index)) {
    return uniform_run(n, dp, uint64_t(*index), uint64_t(*key), uint64_t(*offset));
  }
  for (int64_t i = 0; i < n; ++i) {
    uniform_run(1, dp + i, uint64_t(index[scalars & 1 ? 0 : i]), uint64_t(key[scalars & 2 ? 0 : i]),
                uint64_t(offset[scalars & 4 ? 0 : i]));
  }
}
