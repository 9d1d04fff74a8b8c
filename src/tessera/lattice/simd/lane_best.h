// The epilogue of the score kernels. Included inside their unnamed namespaces, after kVectorBytes,
// kLanes and kVectors.

typedef float Vector __attribute__((vector_size(kVectorBytes)));
typedef int32_t Indices __attribute__((vector_size(kVectorBytes)));

TESSERA_INLINE void load(Vector& to, const float* from) {
  __builtin_memcpy(&to, from, sizeof to);
#if defined(__AVX512F__)
  asm("" : "+v"(to));  // gcc would load it again at each use, and tiles need the load ports
#endif
}

TESSERA_INLINE void clear(const LaneBest& to, int64_t rows) {
  for (int64_t i = 0; i < rows * kLanes; ++i) {
    to.best[i] = to.second[i] = -__builtin_inff();
    to.anchor[i] = 0;
  }
}

// Anchors come in ascending order: of equal scores the earlier one stays.
TESSERA_INLINE void keep_best(const LaneBest& to, int64_t row, int32_t first_anchor,
                              const Vector (&scores)[kVectors]) {
  Vector best, second;
  Indices anchor, candidate;
  load(best, to.best + row * kLanes);
  load(second, to.second + row * kLanes);
  __builtin_memcpy(&anchor, to.anchor + row * kLanes, sizeof anchor);
  for (int l = 0; l < kLanes; ++l) candidate[l] = l;
  candidate += first_anchor;
#pragma GCC unroll 2
  for (int w = 0; w < kVectors; ++w) {
    const Vector score = scores[w];
    const Indices better = score > best;
    const Vector loser = score < best ? score : best;
    second = loser > second ? loser : second;
    best = better ? score : best;
    anchor = better ? candidate : anchor;
    candidate += kLanes;
  }
  __builtin_memcpy(to.best + row * kLanes, &best, sizeof best);
  __builtin_memcpy(to.second + row * kLanes, &second, sizeof second);
  __builtin_memcpy(to.anchor + row * kLanes, &anchor, sizeof anchor);
}

TESSERA_INLINE float length_of(const float* values, int64_t count) {
  Vector sum = {}, v;
  int64_t p = 0;
  for (; p + kLanes <= count; p += kLanes) {
    load(v, values + p);
    sum += v * v;
  }
  float total = 0;
  for (; p < count; ++p) total += values[p] * values[p];
  for (int l = 0; l < kLanes; ++l) total += sum[l];
  return __builtin_sqrtf(total);
}
