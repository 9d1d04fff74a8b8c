// 2^up e^x within 2 ulp, which is most of a softmax: 2^(n / 32) from a table, and a polynomial of
// degree two for what is left of x. Two multiplications less than exp. Included after math.h.

typedef float Floats __attribute__((vector_size(kRegister)));
typedef int32_t Ints __attribute__((vector_size(kRegister)));

// The steps below take single values, registers, or what has a low and a high half of them.
template <class X>
TESSERA_INLINE X every(float value) {
  if constexpr (sizeof(X) == sizeof(float)) {
    return value;
  } else if constexpr (requires(X x) { x.low; }) {
    const auto half = every<decltype(X::low)>(value);
    return {half, half};
  } else {
    return value - X{};  // not plus: -0 stays -0
  }
}

// Masks of all lanes, because gcc 12 warns of what the plain forms leave undefined.
#if defined(__AVX512F__)
inline constexpr __mmask16 kAllLanes = 0xffff;
TESSERA_INLINE Floats fused(Floats a, Floats b, Floats c) {
  return Floats(_mm512_fmadd_ps(__m512(a), __m512(b), __m512(c)));
}
TESSERA_INLINE Floats at_least(float least, Floats x) {
  return Floats(_mm512_maskz_max_ps(kAllLanes, _mm512_set1_ps(least), __m512(x)));
}
#else
TESSERA_INLINE Floats fused(Floats a, Floats b, Floats c) {
#if defined(__AVX2__)
  return Floats(_mm256_fmadd_ps(__m256(a), __m256(b), __m256(c)));
#else
  for (int64_t i = 0; i < kRegister / int64_t(sizeof(float)); ++i) c[i] = fused(a[i], b[i], c[i]);
  return c;
#endif
}
TESSERA_INLINE Floats at_least(float least, Floats x) {
  const Floats leasts = every<Floats>(least);
  return leasts > x ? leasts : x;
}
#endif
TESSERA_INLINE float at_least(float least, float x) { return least > x ? least : x; }

// Added to a number, it leaves the nearest integer in the low bits.
inline constexpr float kRoundToInteger = 0x1.8p23f;

// 2^(j / 32).
inline constexpr float kRoots[32] = {
    0x1p+0f,        0x1.059b0ep+0f, 0x1.0b5586p+0f, 0x1.11301ep+0f, 0x1.172b84p+0f, 0x1.1d4874p+0f,
    0x1.2387a6p+0f, 0x1.29e9ep+0f,  0x1.306fep+0f,  0x1.371a74p+0f, 0x1.3dea64p+0f, 0x1.44e086p+0f,
    0x1.4bfdaep+0f, 0x1.5342b6p+0f, 0x1.5ab07ep+0f, 0x1.6247ecp+0f, 0x1.6a09e6p+0f, 0x1.71f75ep+0f,
    0x1.7a1148p+0f, 0x1.82589ap+0f, 0x1.8ace54p+0f, 0x1.93737cp+0f, 0x1.9c4918p+0f, 0x1.a5503cp+0f,
    0x1.ae89fap+0f, 0x1.b7f77p+0f,  0x1.c199bep+0f, 0x1.cb720ep+0f, 0x1.d5818ep+0f, 0x1.dfc974p+0f,
    0x1.ea4afap+0f, 0x1.f50766p+0f,
};

// The bits of kRoots[j] · 2^up, less j << 18: with n << 18 added they are those of 2^(up + n / 32),
// j being n modulo 32.
struct RootBits {
  alignas(64) int32_t at[32];
};
constexpr RootBits root_bits(int32_t up) {
  RootBits bits{};
  for (int32_t j = 0; j < 32; ++j) {
    bits.at[j] = __builtin_bit_cast(int32_t, kRoots[j]) + (up << 23) - (j << 18);
  }
  return bits;
}
template <int32_t kUp>
inline constexpr RootBits kRootBits = root_bits(kUp);

// The entry of n modulo 32.
template <int32_t kUp>
TESSERA_INLINE int32_t root_of(int32_t n) {
  return kRootBits<kUp>.at[n & 31];
}
template <int32_t kUp>
TESSERA_INLINE Ints root_of(Ints n) {
  const int32_t* const table = kRootBits<kUp>.at;
#if defined(__AVX512F__)
  const __m512i low = _mm512_load_si512(table), high = _mm512_load_si512(table + 16);
  return Ints(_mm512_permutex2var_epi32(low, __m512i(n), high));
#elif defined(__AVX2__)
  const auto eight = [&](int first) {
    const __m256i from = _mm256_load_si256(reinterpret_cast<const __m256i*>(table + first));
    return _mm256_castsi256_ps(_mm256_permutevar8x32_epi32(from, __m256i(n)));
  };
  const auto bit = [&](int at) { return _mm256_castsi256_ps(__m256i(n << (31 - at))); };
  const __m256 low = _mm256_blendv_ps(eight(0), eight(8), bit(3));
  const __m256 high = _mm256_blendv_ps(eight(16), eight(24), bit(3));
  return Ints(_mm256_blendv_ps(low, high, bit(4)));
#else
  for (int64_t i = 0; i < kRegister / int64_t(sizeof(int32_t)); ++i) n[i] = table[n[i] & 31];
  return n;
#endif
}

// 2^(up + n / 32) for the integer n that kRoundToInteger left in `shifted`.
template <int32_t kUp>
TESSERA_INLINE float power_of(float shifted) {
  const auto n = __builtin_bit_cast(int32_t, shifted);
  return float_of(uint32_t(root_of<kUp>(n)) + (uint32_t(n) << 18));
}
template <int32_t kUp>
TESSERA_INLINE Floats power_of(Floats shifted) {
  const auto n = Ints(shifted);
  return Floats(root_of<kUp>(n) + (n << 18));
}

// In place, K of them side by side, so that no step waits for the one before. REQUIRES a result in
// the normal range; else it is anything.
template <int32_t kUp, int K, class X>
TESSERA_INLINE void exp_up(X (&x)[K]) {
  X shifted[K], n[K], power[K];
  const X round = every<X>(kRoundToInteger);
  for (int k = 0; k < K; ++k) shifted[k] = fused(x[k], every<X>(0x1.715476p+5f), round);
  for (int k = 0; k < K; ++k) n[k] = shifted[k] - round;
  for (int k = 0; k < K; ++k) x[k] = fused(n[k], every<X>(-0x1.62e43p-6f), x[k]);
  for (int k = 0; k < K; ++k) x[k] = fused(n[k], every<X>(0x1.05c61p-34f), x[k]);
  for (int k = 0; k < K; ++k) power[k] = power_of<kUp>(shifted[k]);
  for (int k = 0; k < K; ++k) n[k] = fused(x[k], every<X>(0.5f), every<X>(1.0000147f));
  for (int k = 0; k < K; ++k) x[k] = fused(power[k] * x[k], n[k], power[k]);
}
