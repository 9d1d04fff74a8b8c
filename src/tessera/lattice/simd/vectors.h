// Vectors of 64 bytes on every instruction set, as parts of its own width (compilers would take
// wider ones apart element by element). Included by simd/codes.cpp.

#define TESSERA_INLINE [[gnu::always_inline]] inline

#if defined(__AVX512F__)
constexpr int kPartBytes = 64;
#elif defined(__AVX2__)
constexpr int kPartBytes = 32;
#else
constexpr int kPartBytes = 16;
#endif
constexpr int kParts = 64 / kPartBytes, kPartLanes = kPartBytes / 4;
constexpr int kLanes = 16;

typedef float FloatPart __attribute__((vector_size(kPartBytes)));
typedef int32_t IntPart __attribute__((vector_size(kPartBytes)));
typedef uint32_t WordPart __attribute__((vector_size(kPartBytes)));
typedef uint16_t ShortPart __attribute__((vector_size(kPartBytes)));
typedef uint8_t BytePart __attribute__((vector_size(kPartBytes)));
typedef uint8_t NarrowPart __attribute__((vector_size(kPartBytes / 4)));
typedef uint16_t HalfPart __attribute__((vector_size(kPartBytes / 2)));

struct Floats {
  using Part = FloatPart;
  Part part[kParts];
};
struct Ints {
  using Part = IntPart;
  Part part[kParts];
};
struct Shorts {
  using Part = ShortPart;
  Part part[kParts];
};

// A V whose part i is f(i).
template <class V, class F>
TESSERA_INLINE V each_part(F f) {
  V result;
#pragma GCC unroll 4
  for (int i = 0; i < kParts; ++i) result.part[i] = f(i);
  return result;
}

template <class P>
TESSERA_INLINE P load_part(const void* from) {
  P p;
  __builtin_memcpy(&p, from, sizeof p);
  return p;
}

template <class P>
TESSERA_INLINE void store_part(void* to, P p) {
  __builtin_memcpy(to, &p, sizeof p);
}

// Part by part: copied as a whole, a vector would go through memory in pieces of another size.
template <class V>
TESSERA_INLINE V load(const void* from) {
  using P = typename V::Part;
  return each_part<V>(
      [&](int i) { return load_part<P>(static_cast<const char*>(from) + i * kPartBytes); });
}

template <class V>
TESSERA_INLINE void store(void* to, const V& v) {
#pragma GCC unroll 4
  for (int i = 0; i < kParts; ++i) {
    store_part(static_cast<char*>(to) + i * kPartBytes, v.part[i]);
  }
}

TESSERA_INLINE Floats all(float value) {
  return each_part<Floats>([&](int) { return FloatPart{} + value; });
}
TESSERA_INLINE Floats operator+(const Floats& a, const Floats& b) {
  return each_part<Floats>([&](int i) { return a.part[i] + b.part[i]; });
}
TESSERA_INLINE Floats operator-(const Floats& a, const Floats& b) {
  return each_part<Floats>([&](int i) { return a.part[i] - b.part[i]; });
}
TESSERA_INLINE Floats operator*(const Floats& a, const Floats& b) {
  return each_part<Floats>([&](int i) { return a.part[i] * b.part[i]; });
}
TESSERA_INLINE Floats operator+(const Floats& a, float b) { return a + all(b); }
TESSERA_INLINE Floats operator-(const Floats& a, float b) { return a - all(b); }
TESSERA_INLINE Floats operator*(const Floats& a, float b) { return a * all(b); }
TESSERA_INLINE Floats least(const Floats& a, const Floats& b) {
  return each_part<Floats>([&](int i) { return a.part[i] < b.part[i] ? a.part[i] : b.part[i]; });
}
TESSERA_INLINE Floats greatest(const Floats& a, const Floats& b) {
  return each_part<Floats>([&](int i) { return a.part[i] > b.part[i] ? a.part[i] : b.part[i]; });
}
// a / b, 0 where b is.
TESSERA_INLINE Floats quotient(const Floats& a, const Floats& b) {
  return each_part<Floats>(
      [&](int i) { return b.part[i] == 0.f ? FloatPart{} : a.part[i] / b.part[i]; });
}
TESSERA_INLINE Ints operator+(const Ints& a, const Ints& b) {
  return each_part<Ints>([&](int i) { return a.part[i] + b.part[i]; });
}

TESSERA_INLINE Ints truncated(const Floats& v) {
  return each_part<Ints>([&](int i) { return __builtin_convertvector(v.part[i], IntPart); });
}
TESSERA_INLINE Floats to_floats(const Ints& v) {
  return each_part<Floats>([&](int i) { return __builtin_convertvector(v.part[i], FloatPart); });
}
// Rounds to nearest even, |v| < 2^22.
TESSERA_INLINE Ints nearest(const Floats& v) {
  constexpr float kMagic = 0x1.8p23f;
  return each_part<Ints>([&](int i) { return (IntPart)(v.part[i] + kMagic) - 0x4b400000; });
}
// The low byte of each lane.
TESSERA_INLINE void store_bytes(void* to, const Ints& v) {
#pragma GCC unroll 4
  for (int i = 0; i < kParts; ++i) {
    store_part(static_cast<char*>(to) + i * kPartLanes,
               __builtin_convertvector((WordPart)v.part[i], NarrowPart));
  }
}
// 16 f16, not negative and finite.
TESSERA_INLINE Floats widen_halves(const void* from) {
  return each_part<Floats>([&](int i) {
    const auto halves = load_part<HalfPart>(static_cast<const char*>(from) + i * kPartBytes / 2);
    return (FloatPart)(__builtin_convertvector(halves, WordPart) << 13) * 0x1p112f;
  });
}

// Folds lane i with lane i + 8, then i + 4, i + 2, i + 1: the same bits everywhere.
template <class V, class F>
TESSERA_INLINE auto folded(V v, F f) {
#pragma GCC unroll 4
  for (int h = kParts / 2; h > 0; h /= 2) {
    for (int i = 0; i < h; ++i) v.part[i] = f(v.part[i], v.part[i + h]);
  }
  auto p = v.part[0];
  using P = decltype(p);
  if constexpr (sizeof(P) == 64) {
    p = f(p, __builtin_shufflevector(p, p, 8, 9, 10, 11, 12, 13, 14, 15, 8, 9, 10, 11, 12, 13, 14,
                                     15));
    p = f(p, __builtin_shufflevector(p, p, 4, 5, 6, 7, 4, 5, 6, 7, 4, 5, 6, 7, 4, 5, 6, 7));
    p = f(p, __builtin_shufflevector(p, p, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3));
    p = f(p, __builtin_shufflevector(p, p, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1));
  } else if constexpr (sizeof(P) == 32) {
    p = f(p, __builtin_shufflevector(p, p, 4, 5, 6, 7, 4, 5, 6, 7));
    p = f(p, __builtin_shufflevector(p, p, 2, 3, 2, 3, 2, 3, 2, 3));
    p = f(p, __builtin_shufflevector(p, p, 1, 1, 1, 1, 1, 1, 1, 1));
  } else {
    p = f(p, __builtin_shufflevector(p, p, 2, 3, 2, 3));
    p = f(p, __builtin_shufflevector(p, p, 1, 1, 1, 1));
  }
  return p[0];
}

TESSERA_INLINE float sum(const Floats& v) {
  return folded(v, [](FloatPart a, FloatPart b) { return a + b; });
}
TESSERA_INLINE int32_t sum(const Ints& v) {
  return folded(v, [](IntPart a, IntPart b) { return a + b; });
}
TESSERA_INLINE float maximum(const Floats& v) {
  return folded(v, [](FloatPart a, FloatPart b) { return a > b ? a : b; });
}

// The lanes of a part whose numbers differ in bit kStep, exchanged.
template <int kStep, class P>
TESSERA_INLINE P exchanged(P v) {
  constexpr int s = kStep;
  if constexpr (sizeof(P) == 64) {
    return __builtin_shufflevector(v, v, 0 ^ s, 1 ^ s, 2 ^ s, 3 ^ s, 4 ^ s, 5 ^ s, 6 ^ s, 7 ^ s,
                                   8 ^ s, 9 ^ s, 10 ^ s, 11 ^ s, 12 ^ s, 13 ^ s, 14 ^ s, 15 ^ s);
  } else if constexpr (sizeof(P) == 32) {
    return __builtin_shufflevector(v, v, 0 ^ s, 1 ^ s, 2 ^ s, 3 ^ s, 4 ^ s, 5 ^ s, 6 ^ s, 7 ^ s);
  } else {
    return __builtin_shufflevector(v, v, 0 ^ s, 1 ^ s, 2 ^ s, 3 ^ s);
  }
}

// Sums and differences of the lanes whose numbers differ in bit kStep: one stage of a
// Walsh-Hadamard transform.
template <int kStep, class V>
TESSERA_INLINE V butterfly(const V& v) {
  return each_part<V>([&](int i) {
    if constexpr (kStep >= kPartLanes) {
      constexpr int other = kStep / kPartLanes;
      return (i & other) == 0 ? v.part[i] + v.part[i ^ other] : v.part[i ^ other] - v.part[i];
    } else {
      FloatPart signs;
      for (int lane = 0; lane < kPartLanes; ++lane) signs[lane] = (lane & kStep) != 0 ? -1.f : 1.f;
      return v.part[i] * signs + exchanged<kStep>(v.part[i]);
    }
  });
}
