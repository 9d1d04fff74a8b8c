// Elementary functions for loops that the compiler vectorises: no branches, no tables, no calls, so
// that all instruction sets give the same bits. Included by simd/loops.cpp inside an anonymous
// namespace. Names are those of scalar_ops.def's expressions.
//
// Errors against the exact value stand in docs/dtypes.md; tests/backend_cpu/isa_test.cpp measures
// them. f64, and what has no form here, are libm's.

TESSERA_INLINE uint32_t bits_of(float x) { return __builtin_bit_cast(uint32_t, x); }
TESSERA_INLINE float float_of(uint32_t bits) { return __builtin_bit_cast(float, bits); }

TESSERA_INLINE uint64_t bits_of(double x) { return __builtin_bit_cast(uint64_t, x); }
TESSERA_INLINE double double_of(uint64_t bits) { return __builtin_bit_cast(double, bits); }

// a · b + c, rounded once. Without the instruction, by way of f64: the product is exact, and a sum
// rounded to odd can be rounded again as if it had never been.
TESSERA_INLINE float fused(float a, float b, float c) {
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
  return __builtin_fmaf(a, b, c);
#else
  const double product = double(a) * double(b), addend = double(c), sum = product + addend;
  const double part = sum - product;
  const double lost = (product - (sum - part)) + (addend - part);
  const uint64_t bits = bits_of(sum);
  const uint64_t away = (lost > 0) == (sum > 0) ? 1 : uint64_t(-1);
  const bool inexact = lost > 0 || lost < 0;
  return float(double_of(inexact && (bits & 1) == 0 ? bits + away : bits));
#endif
}

TESSERA_INLINE double fused(double a, double b, double c) { return __builtin_fma(a, b, c); }

// 2^n for n in [-126, 127].
TESSERA_INLINE float power_of_two(int32_t n) { return float_of(uint32_t(n + 127) << 23); }

// x = n ln 2 + r with |r| <= ln 2 / 2: returns r, sets n. REQUIRES |x| < 2^21.
TESSERA_INLINE float reduce_ln2(float x, int32_t& n) {
  // Adding 1.5 * 2^23 leaves the rounded integer in the low mantissa bits.
  const float shifted = fused(x, 0x1.715476p+0f, 0x1.8p23f);
  n = int32_t(bits_of(shifted)) - int32_t(0x4b400000);
  const float k = shifted - 0x1.8p23f;
  return fused(k, 0x1.05c61p-29f, fused(k, -0x1.62e43p-1f, x));
}

// (e^r - 1 - r) / r^2 for |r| <= ln 2 / 2, by Chebyshev interpolation.
TESSERA_INLINE float exp_tail(float r) {
  float p = 0.0013926198f;
  p = fused(p, r, 0.00836319f);
  p = fused(p, r, 0.041666556f);
  p = fused(p, r, 0.16666576f);
  return fused(p, r, 0.5f);
}

// e^r - 1 and e^r for |r| <= ln 2 / 2.
TESSERA_INLINE float expm1_near_zero(float r) { return fused(r * r, exp_tail(r), r); }
TESSERA_INLINE float exp_near_zero(float r) { return fused(fused(exp_tail(r), r, 1), r, 1); }

// e^x · 2^shift, for a shift of -1 or 0. REQUIRES x in [-104, 92] or NaN.
TESSERA_INLINE float exp_within(float x, int32_t shift) {
  int32_t n;
  const float p = exp_near_zero(reduce_ln2(x, n));
  // In two steps, so that results beyond the normal range overflow or become subnormal correctly.
  const int32_t biased = n + (2 * 127 + shift), half = biased >> 1;
  return p * float_of(uint32_t(half) << 23) * float_of(uint32_t(biased - half) << 23);
}

TESSERA_INLINE float exp_shifted(float x, int32_t shift) {
  const float y = x > 92.f ? 92.f : x;
  return exp_within(y < -104.f ? -104.f : y, shift);
}

TESSERA_INLINE float exp(float x) { return exp_shifted(x, 0); }

TESSERA_INLINE float expm1(float x) {
  const uint32_t sign = bits_of(x) & 0x80000000u;
  float y = x > 92.f ? 92.f : x;
  y = y < -20.f ? -20.f : y;
  int32_t n;
  const float r = reduce_ln2(y, n);
  const float p = expm1_near_zero(r);
  const int32_t small = n > 25 ? 25 : n;
  const float scale = power_of_two(small);
  // Without cancellation: scale - 1 is exact. From 2^26 on, the 1 is below the last place.
  const float near = fused(scale, p, scale - 1);
  const int32_t half = n >> 1;
  const float far = (1 + p) * power_of_two(half) * power_of_two(n - half);
  return float_of(bits_of(n > 25 ? far : near) | sign);
}

// Half of e^x, which has no overflow before the result has.
TESSERA_INLINE float cosh(float x) {
  const float half = exp_shifted(float_of(bits_of(x) & 0x7fffffffu), -1);
  return half + 0.25f / half;
}

TESSERA_INLINE float sinh(float x) {
  const uint32_t sign = bits_of(x) & 0x80000000u;
  const float magnitude = float_of(bits_of(x) & 0x7fffffffu);
  const float half = exp_shifted(magnitude, -1);
  const float z = magnitude > 1.f ? 1.f : x * x;
  float series = 1.f / 39916800;
  series = fused(series, z, 1.f / 362880);
  series = fused(series, z, 1.f / 5040);
  series = fused(series, z, 1.f / 120);
  series = fused(series, z, 1.f / 6);
  const float small = fused(magnitude * z, series, magnitude);
  return float_of(bits_of(magnitude > 1.f ? half - 0.25f / half : small) | sign);
}

// x = 2^k (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)): returns f, sets k. REQUIRES x > 0 and finite.
TESSERA_INLINE float split_exponent(float x, float& k) {
  const bool tiny = x < 0x1p-126f;
  const uint32_t bits = bits_of(tiny ? x * 0x1p23f : x) - 0x3f3504f3u;
  k = float((int32_t(bits) >> 23) - (tiny ? 23 : 0));
  return float_of((bits & 0x007fffffu) + 0x3f3504f3u) - 1;
}

// log(1 + f) - f + f² / 2.
TESSERA_INLINE float log_tail(float f) {
  const float s = f / (2 + f);
  const float z = s * s;
  const float series = z * (2.f / 3 + z * (2.f / 5 + z * (2.f / 7 + z * (2.f / 9))));
  return s * (0.5f * f * f + series);
}

// What all logarithms have in common where x is not a positive number.
TESSERA_INLINE float log_or_special(float x, float y) {
  y = x == 0 ? -__builtin_inff() : y;
  y = x == __builtin_inff() ? x : y;
  return x >= 0 ? y : __builtin_nanf("");
}

TESSERA_INLINE float log(float x) {
  float k;
  const float f = split_exponent(x, k);
  const float low = log_tail(f) + k * 0x1.7f7d1cp-20f;
  return log_or_special(x, k * 0x1.62e4p-1f + (f - (0.5f * f * f - low)));
}

TESSERA_INLINE float log2(float x) {
  float k;
  const float f = split_exponent(x, k);
  const float y = f - (0.5f * f * f - log_tail(f));
  return log_or_special(x, k + (y * 0x1.715476p+0f + y * 0x1.4ae0cp-26f));
}

TESSERA_INLINE float log1p(float x) {
  const float u = 1 + x;
  // What the sum lost, times the slope of the logarithm there.
  const float lost = (x - (u - 1)) / u;
  const float y = log(u) + (u > 0 && u < __builtin_inff() ? lost : 0);
  return float_of(bits_of(y) | (bits_of(x) & 0x80000000u));
}

// x + x^3 p(x^2), p by Chebyshev interpolation, where |x| < 0.625; 1 - 2 / (e^2x + 1) above.
TESSERA_INLINE float tanh(float x) {
  const uint32_t sign = bits_of(x) & 0x80000000u;
  const float magnitude = float_of(bits_of(x) & 0x7fffffffu);
  const float z = x * x;
  float p = -6.10494800e-3f;
  p = fused(p, z, 2.10036410e-2f);
  p = fused(p, z, -5.38525000e-2f);
  p = fused(p, z, 1.33327830e-1f);
  p = fused(p, z, -3.33333280e-1f);
  const float small = fused(magnitude * z, p, magnitude);
  const float y = magnitude > 10.f ? 20.f : 2 * magnitude;
  int32_t n;
  const float r = reduce_ln2(y, n);
  const float grown = power_of_two(n) * exp_near_zero(r);
  const float large = 1 - 2 / (grown + 1);
  const float result = magnitude < 0.625f ? small : large;
  return x == x ? float_of(bits_of(result) | sign) : x;
}

// Two fits by Chebyshev interpolation: erf(x) / x in x^2 where |x| < 0.89, -log(erfc(x)) above.
TESSERA_INLINE float erf(float x) {
  const uint32_t sign = bits_of(x) & 0x80000000u;
  const float magnitude = float_of(bits_of(x) & 0x7fffffffu);
  const float z = x * x;
  float small = 8.56539120e-5f;
  small = fused(small, z, -8.18761543e-4f);
  small = fused(small, z, 5.20488555e-3f);
  small = fused(small, z, -2.68609130e-2f);
  small = fused(small, z, 1.12837222e-1f);
  small = fused(small, z, -3.76126354e-1f);
  small = magnitude * fused(small, z, 1.12837917f);
  const float t = magnitude > 4.f ? 4.f : magnitude;
  float q = -1.64246388e-6f;
  q = fused(q, t, 4.61496915e-5f);
  q = fused(q, t, -5.97444237e-4f);
  q = fused(q, t, 4.76184550e-3f);
  q = fused(q, t, -2.64250446e-2f);
  q = fused(q, t, 1.10081863e-1f);
  q = fused(q, t, 6.31830425e-1f);
  q = fused(q, t, 1.13022669f);
  q = fused(q, t, -3.17316510e-4f);
  int32_t n;
  const float r = reduce_ln2(-q, n);
  const float large = 1 - power_of_two(n) * exp_near_zero(r);
  const float result = float_of(bits_of(magnitude < 0.89f ? small : large) | sign);
  return x == x ? result : x;
}

TESSERA_INLINE float sqrt(float x) { return __builtin_sqrtf(x); }
TESSERA_INLINE float floor(float x) { return __builtin_floorf(x); }
TESSERA_INLINE float ceil(float x) { return __builtin_ceilf(x); }
TESSERA_INLINE float rint(float x) { return __builtin_rintf(x); }
TESSERA_INLINE float trunc(float x) { return __builtin_truncf(x); }
TESSERA_INLINE float fmod(float x, float y) { return __builtin_fmodf(x, y); }
TESSERA_INLINE float copysign(float x, float y) { return __builtin_copysignf(x, y); }

TESSERA_INLINE double exp(double x) { return __builtin_exp(x); }
TESSERA_INLINE double log(double x) { return __builtin_log(x); }
TESSERA_INLINE double tanh(double x) { return __builtin_tanh(x); }
TESSERA_INLINE double erf(double x) { return __builtin_erf(x); }
TESSERA_INLINE double sqrt(double x) { return __builtin_sqrt(x); }
TESSERA_INLINE double floor(double x) { return __builtin_floor(x); }
TESSERA_INLINE double sin(double x) { return __builtin_sin(x); }
TESSERA_INLINE double cos(double x) { return __builtin_cos(x); }
TESSERA_INLINE double pow(double x, double y) { return __builtin_pow(x, y); }
TESSERA_INLINE double expm1(double x) { return __builtin_expm1(x); }
TESSERA_INLINE double log1p(double x) { return __builtin_log1p(x); }
TESSERA_INLINE double log2(double x) { return __builtin_log2(x); }
TESSERA_INLINE double tan(double x) { return __builtin_tan(x); }
TESSERA_INLINE double asin(double x) { return __builtin_asin(x); }
TESSERA_INLINE double acos(double x) { return __builtin_acos(x); }
TESSERA_INLINE double atan(double x) { return __builtin_atan(x); }
TESSERA_INLINE double sinh(double x) { return __builtin_sinh(x); }
TESSERA_INLINE double cosh(double x) { return __builtin_cosh(x); }
TESSERA_INLINE double ceil(double x) { return __builtin_ceil(x); }
TESSERA_INLINE double rint(double x) { return __builtin_rint(x); }
TESSERA_INLINE double trunc(double x) { return __builtin_trunc(x); }
TESSERA_INLINE double atan2(double y, double x) { return __builtin_atan2(y, x); }
TESSERA_INLINE double fmod(double x, double y) { return __builtin_fmod(x, y); }
TESSERA_INLINE double copysign(double x, double y) { return __builtin_copysign(x, y); }

template <class T>
TESSERA_INLINE T t_abs(T x) {
  if constexpr (T(-1) > T(0)) {
    return x;
  } else if constexpr (T(0.5) != T(0)) {
    return sizeof(T) == 4 ? T(__builtin_fabsf(float(x))) : T(__builtin_fabs(double(x)));
  } else {
    return T(x < 0 ? -x : x);
  }
}

// The type in which arithmetic of an integer type wraps.
template <class T>
using Unsigned = typename Choose<sizeof(T) == 8, uint64_t, uint32_t>::Type;

// Floats as Python and torch.floor_divide have it: the remainder is exact, so that the quotient is
// too, where a / b may round up to the next integer. Integers: processors trap on x / 0 and on
// lowest / -1, so neither is ever divided.
template <class T>
TESSERA_INLINE T t_floor_div(T a, T b) {
  if constexpr (kIsFloat<T>) {
    const T rest = fmod(a, b);
    T quotient = (a - rest) / b;
    quotient = rest != 0 && (rest < 0) != (b < 0) ? quotient - 1 : quotient;
    const T whole = floor(quotient);
    const T nearest = quotient - whole > T(0.5) ? whole + 1 : whole;
    return b == 0 ? a / b : quotient == 0 ? copysign(T(0), a / b) : nearest;
  } else {
    const bool negates = T(-1) < T(0) && b == T(-1);
    const T divisor = b == 0 || negates ? T(1) : b;
    const T quotient = T(a / divisor), rest = T(a - quotient * divisor);
    const T floored = T(quotient - (rest != 0 && (rest < 0) != (divisor < 0)));
    return b == 0 ? T(0) : negates ? T(0 - Unsigned<T>(a)) : floored;
  }
}

// With the sign of the divisor, as Python and torch.remainder have it.
template <class T>
TESSERA_INLINE T t_mod(T a, T b) {
  if constexpr (kIsFloat<T>) {
    const T rest = fmod(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
  } else {
    const T divisor = b == 0 || (T(-1) < T(0) && b == T(-1)) ? T(1) : b;
    const T rest = T(a % divisor);
    return rest != 0 && (rest < 0) != (divisor < 0) ? T(rest + divisor) : rest;
  }
}

// GPT-2's gelu, x / 2 · (1 + tanh(w / 2)) with w = 2 √(2/π) (x + 0.044715 x³), as x · sigmoid(w),
// which does not cancel. Beyond ±kGeluEnd it is 0 or x, and w would overflow.
template <class T>
inline constexpr T kGeluSlope = T(1.5957691216057308);  // 2 √(2/π)
template <class T>
inline constexpr T kGeluCube = T(1.5957691216057308 * 0.044715);
inline constexpr int kGeluEnd = 10000;

// Floats of one sign are ordered as their bits: a minimum of integers is one instruction, where a
// comparison of floats with a constant makes compilers go through all that follows twice. What they
// make of NaN is not used.
TESSERA_INLINE uint32_t lesser(uint32_t a, uint32_t b) { return a < b ? a : b; }
TESSERA_INLINE float gelu_within(float x) {  // at least -kGeluEnd
  return float_of(lesser(bits_of(x), bits_of(-float(kGeluEnd))));
}
TESSERA_INLINE float exp_of_minus_magnitude(float x) {
  return exp_within(float_of(lesser(bits_of(x) & 0x7fffffffu, bits_of(104.f)) | 0x80000000u), 0);
}
TESSERA_INLINE double gelu_within(double x) { return x < -kGeluEnd ? -kGeluEnd : x; }
TESSERA_INLINE double exp_of_minus_magnitude(double x) { return exp(-__builtin_fabs(x)); }

template <class T>
TESSERA_INLINE T t_gelu_tanh(T a) {
  const T x = gelu_within(a);
  const T w = x * fused(x * x, kGeluCube<T>, kGeluSlope<T>);
  const T small = exp_of_minus_magnitude(w), share = 1 / (1 + small);
  return a != a ? a : x * (w < 0 ? small * share : share);
}

template <class T>
TESSERA_INLINE T t_gelu_tanh_slope(T a) {
  const T x = -gelu_within(-gelu_within(a)), square = x * x;
  const T w = x * fused(square, kGeluCube<T>, kGeluSlope<T>);
  const T small = exp_of_minus_magnitude(w), share = 1 / (1 + small), other = small * share;
  const T rise = x * fused(square, 3 * kGeluCube<T>, kGeluSlope<T>);  // of w, times x
  return a != a ? a : fused(rise, other * share, w < 0 ? other : share);
}

template <class T>
TESSERA_INLINE T t_shift_left(T a, T b) {
  const bool inside = uint64_t(b) < sizeof(T) * 8;
  return inside ? T(Unsigned<T>(a) << (inside ? b : T(0))) : T(0);
}

template <class T>
TESSERA_INLINE T t_shift_right(T a, T b) {
  const bool inside = uint64_t(b) < sizeof(T) * 8;
  return inside ? T(a >> (inside ? b : T(0))) : T(a < 0 ? -1 : 0);
}

// The half types of base/half.h without branches. Tested equal to them, bit for bit.
TESSERA_INLINE float f16_to_float(uint16_t h) {
  const uint32_t sign = uint32_t(h & 0x8000u) << 16;
  const uint32_t magnitude = h & 0x7fffu;
  const float scaled = float_of(magnitude << 13) * 0x1p112f;
  const uint32_t mantissa = magnitude & 0x3ffu;
  const uint32_t special = 0x7f800000u | (mantissa << 13) | (mantissa != 0 ? 0x00400000u : 0u);
  return float_of((magnitude >= 0x7c00u ? special : bits_of(scaled)) | sign);
}

TESSERA_INLINE uint16_t float_to_f16(float f) {
  const uint32_t bits = bits_of(f);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  const uint32_t subnormal = bits_of(float_of(magnitude) + 0.5f) - 0x3f000000u;
  const uint32_t normal = (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  uint32_t result = magnitude < 0x38800000u ? subnormal : normal;
  result = magnitude >= 0x477ff000u ? 0x7c00u : result;
  result = magnitude > 0x7f800000u ? 0x7e00u : result;
  return uint16_t(result | sign);
}

TESSERA_INLINE float bf16_to_float(uint16_t h) { return float_of(uint32_t(h) << 16); }

TESSERA_INLINE uint16_t float_to_bf16(float f) {
  const uint32_t bits = bits_of(f);
  const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const uint32_t quiet = (bits >> 16) | 0x0040u;
  return uint16_t((bits & 0x7fffffffu) > 0x7f800000u ? quiet : rounded);
}
