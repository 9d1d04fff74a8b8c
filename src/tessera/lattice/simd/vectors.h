// Vectors of 64 bytes that every instruction set has, in pieces where it must. Included by
// simd/codes.cpp.

#define TESSERA_INLINE [[gnu::always_inline]] inline

typedef float Floats __attribute__((vector_size(64)));
typedef int32_t Ints __attribute__((vector_size(64)));
typedef uint32_t Words __attribute__((vector_size(64)));
typedef uint16_t Shorts __attribute__((vector_size(64)));
typedef uint8_t Bytes __attribute__((vector_size(64)));
typedef uint16_t HalfShorts __attribute__((vector_size(32)));
typedef uint8_t QuarterBytes __attribute__((vector_size(16)));
typedef int8_t QuarterChars __attribute__((vector_size(16)));

constexpr int kLanes = 16;

template <class V>
TESSERA_INLINE V load(const void* from) {
  V v;
  __builtin_memcpy(&v, from, sizeof v);
  return v;
}

template <class V>
TESSERA_INLINE void store(void* to, V v) {
  __builtin_memcpy(to, &v, sizeof v);
}

TESSERA_INLINE Floats all(float value) { return Floats{} + value; }

TESSERA_INLINE Floats least(Floats a, Floats b) { return a < b ? a : b; }
TESSERA_INLINE Floats greatest(Floats a, Floats b) { return a > b ? a : b; }

// In pairs, the same way everywhere.
TESSERA_INLINE float sum(Floats v) {
  v += __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7);
  v += __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11);
  v += __builtin_shufflevector(v, v, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13);
  return v[0] + v[1];
}

TESSERA_INLINE int32_t sum(Ints v) {
  v += __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7);
  v += __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11);
  v += __builtin_shufflevector(v, v, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13);
  return v[0] + v[1];
}

TESSERA_INLINE float maximum(Floats v) {
  v = greatest(v,
               __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7));
  v = greatest(v,
               __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11));
  v = greatest(v,
               __builtin_shufflevector(v, v, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13));
  return v[0] > v[1] ? v[0] : v[1];
}

// 16 f16, not negative and finite.
TESSERA_INLINE Floats widen_halves(const void* from) {
  const Words words = __builtin_convertvector(load<HalfShorts>(from), Words);
  return (Floats)(words << 13) * 0x1p112f;
}
