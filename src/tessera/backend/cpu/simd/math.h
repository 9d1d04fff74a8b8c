// Elementary functions for loops that the compiler vectorises: no branches, no tables, no calls, so
// that all instruction sets give the same bits. Included by simd/loops.cpp inside an anonymous
// namespace. Names are those of scalar_ops.def's expressions.
//
// Errors against the exact value, over floats of all magnitudes (tests/backend_cpu/isa_test.cpp):
// exp and log below 1 ulp, tanh and erf below 2.5.

TESSERA_INLINE uint32_t bits_of(float x) { return __builtin_bit_cast(uint32_t, x); }
TESSERA_INLINE float float_of(uint32_t bits) { return __builtin_bit_cast(float, bits); }

// 2^n for n in [-126, 127].
TESSERA_INLINE float power_of_two(int32_t n) { return float_of(uint32_t(n + 127) << 23); }

// x = n ln 2 + r with |r| <= ln 2 / 2: returns r, sets n. REQUIRES |x| < 2^21.
TESSERA_INLINE float reduce_ln2(float x, int32_t& n) {
  // Adding 1.5 * 2^23 leaves the rounded integer in the low mantissa bits.
  const float shifted = x * 0x1.715476p+0f + 0x1.8p23f;
  n = int32_t(bits_of(shifted)) - int32_t(0x4b400000);
  const float k = shifted - 0x1.8p23f;
  return (x - k * 0x1.62e4p-1f) - k * 0x1.7f7d1cp-20f;
}

// (e^r - 1 - r) / r^2 for |r| <= ln 2 / 2.
TESSERA_INLINE float exp_tail(float r) {
  float p = 1.f / 5040;
  p = p * r + 1.f / 720;
  p = p * r + 1.f / 120;
  p = p * r + 1.f / 24;
  p = p * r + 1.f / 6;
  return p * r + 0.5f;
}

TESSERA_INLINE float exp(float x) {
  float y = x > 89.f ? 89.f : x;
  y = y < -104.f ? -104.f : y;
  int32_t n;
  const float r = reduce_ln2(y, n);
  const float p = 1 + (r + r * r * exp_tail(r));
  // In two steps, so that results beyond the normal range overflow or become subnormal correctly.
  const int32_t half = n >> 1;
  return p * power_of_two(half) * power_of_two(n - half);
}

TESSERA_INLINE float log(float x) {
  const bool tiny = x < 0x1p-126f;
  const float scaled = tiny ? x * 0x1p23f : x;
  // The exponent is split so that the mantissa lies in [sqrt(1/2), sqrt(2)).
  const uint32_t bits = bits_of(scaled) - 0x3f3504f3u;
  const int32_t exponent = (int32_t(bits) >> 23) - (tiny ? 23 : 0);
  const float f = float_of((bits & 0x007fffffu) + 0x3f3504f3u) - 1;
  const float k = float(exponent);
  const float s = f / (2 + f);
  const float z = s * s;
  const float series = z * (2.f / 3 + z * (2.f / 5 + z * (2.f / 7 + z * (2.f / 9))));
  const float half_square = 0.5f * f * f;
  const float low = s * (half_square + series) + k * 0x1.7f7d1cp-20f;
  float y = k * 0x1.62e4p-1f + (f - (half_square - low));
  y = x == 0 ? -__builtin_inff() : y;
  y = x == __builtin_inff() ? x : y;
  return x >= 0 ? y : __builtin_nanf("");
}

TESSERA_INLINE float tanh(float x) {
  const uint32_t sign = bits_of(x) & 0x80000000u;
  const float magnitude = float_of(bits_of(x) & 0x7fffffffu);
  const float y = magnitude > 10.f ? 20.f : 2 * magnitude;
  int32_t n;
  const float r = reduce_ln2(y, n);
  const float scale = power_of_two(n);
  // e^y - 1 without cancellation: scale - 1 is exact.
  const float grown = scale * (r + r * r * exp_tail(r)) + (scale - 1);
  return float_of(bits_of(grown / (grown + 2)) | sign);
}

// Two fits by Chebyshev interpolation: erf(x) / x in x^2 where |x| < 0.89, -log(erfc(x)) above.
TESSERA_INLINE float erf(float x) {
  const uint32_t sign = bits_of(x) & 0x80000000u;
  const float magnitude = float_of(bits_of(x) & 0x7fffffffu);
  const float z = x * x;
  float small = 8.56539120e-5f;
  small = small * z - 8.18761543e-4f;
  small = small * z + 5.20488555e-3f;
  small = small * z - 2.68609130e-2f;
  small = small * z + 1.12837222e-1f;
  small = small * z - 3.76126354e-1f;
  small = magnitude * (small * z + 1.12837917f);
  const float t = magnitude > 4.f ? 4.f : magnitude;
  float q = -1.64246388e-6f;
  q = q * t + 4.61496915e-5f;
  q = q * t - 5.97444237e-4f;
  q = q * t + 4.76184550e-3f;
  q = q * t - 2.64250446e-2f;
  q = q * t + 1.10081863e-1f;
  q = q * t + 6.31830425e-1f;
  q = q * t + 1.13022669f;
  q = q * t - 3.17316510e-4f;
  const float large = 1 - exp(-q);
  return float_of(bits_of(magnitude < 0.89f ? small : large) | sign);
}

TESSERA_INLINE float sqrt(float x) { return __builtin_sqrtf(x); }
TESSERA_INLINE float floor(float x) { return __builtin_floorf(x); }
TESSERA_INLINE float sin(float x) { return __builtin_sinf(x); }
TESSERA_INLINE float cos(float x) { return __builtin_cosf(x); }
TESSERA_INLINE float pow(float x, float y) { return __builtin_powf(x, y); }

TESSERA_INLINE double exp(double x) { return __builtin_exp(x); }
TESSERA_INLINE double log(double x) { return __builtin_log(x); }
TESSERA_INLINE double tanh(double x) { return __builtin_tanh(x); }
TESSERA_INLINE double erf(double x) { return __builtin_erf(x); }
TESSERA_INLINE double sqrt(double x) { return __builtin_sqrt(x); }
TESSERA_INLINE double floor(double x) { return __builtin_floor(x); }
TESSERA_INLINE double sin(double x) { return __builtin_sin(x); }
TESSERA_INLINE double cos(double x) { return __builtin_cos(x); }
TESSERA_INLINE double pow(double x, double y) { return __builtin_pow(x, y); }

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
