// pow, asin, acos and atan2 of floats, in the manner of math.h. Included by simd/loops.cpp. The
// polynomials are fits by Chebyshev interpolation.

// log2(x) of a finite positive x in f64, within 5e-12 of it. Every such float is a normal f64.
TESSERA_INLINE double log2_wide(float x) {
  constexpr uint64_t kRootHalf = 0x3fe6a09e00000000u, kMantissa = 0x000fffffffffffffu;
  constexpr uint64_t kBias = 1024;  // keeps the exponent positive: not every ISA shifts signed ones
  const uint64_t bits = bits_of(double(x)) - kRootHalf;
  const uint64_t exponent = (bits + (kBias << 52)) >> 52;
  const double k = double_of(0x4330000000000000u | exponent) - (0x1p52 + double(kBias));
  const double m = double_of((bits & kMantissa) + kRootHalf);
  const double s = (m - 1) / (m + 1), z = s * s;
  double q = 0x1.5ce91c1a94018p-2;
  q = q * z + 0x1.a58d86633111bp-2;
  q = q * z + 0x1.27777fd825af6p-1;
  q = q * z + 0x1.ec709d13094a7p-1;
  q = q * z + 0x1.71547652bed9dp+1;
  return k + s * q;
}

// 2^t, rounded once to a float.
TESSERA_INLINE float exp2_wide(double t) {
  double y = t > 200 ? 200 : t;
  y = y < -200 ? -200 : y;
  const double shifted = y + 0x1.8p52, r = y - (shifted - 0x1.8p52);
  double p = 0.0001546144469856913;
  p = p * r + 0.0013400428177615838;
  p = p * r + 0.009618056678524637;
  p = p * r + 0.05550327226670302;
  p = p * r + 0.24022650922288757;
  p = p * r + 0.6931472067028326;
  p = p * r + 1;
  return float(double_of(bits_of(p) + (bits_of(shifted) << 52)));
}

TESSERA_INLINE float pow(float x, float y) {
  constexpr float kInfinity = __builtin_inff();
  const float magnitude = float_of(bits_of(x) & 0x7fffffffu);
  double l = log2_wide(magnitude);
  l = magnitude == 0 ? -double(kInfinity) : l;
  l = magnitude == kInfinity ? double(kInfinity) : l;
  float result = exp2_wide(double(y) * l);
  result = magnitude == 1 ? 1.f : result;  // also to the power of infinity
  const float half = 0.5f * y;
  const bool integer = __builtin_truncf(y) == y, odd = integer && __builtin_truncf(half) != half;
  result = float_of(bits_of(result) | (odd ? bits_of(x) & 0x80000000u : 0u));
  result = x < 0 && magnitude != kInfinity && !integer ? __builtin_nanf("") : result;
  result = x != x || y != y ? __builtin_nanf("") : result;
  return y == 0 || x == 1 ? 1.f : result;
}

// asin(x) for 0 <= x <= 0.5.
TESSERA_INLINE float asin_near_zero(float x) {
  const float z = x * x;
  float p = 0.033690847f;
  p = fused(p, z, 0.017149238f);
  p = fused(p, z, 0.031100662f);
  p = fused(p, z, 0.044599403f);
  p = fused(p, z, 0.07500094f);
  p = fused(p, z, 0.16666666f);
  return fused(x * z, p, x);
}

// Above 0.5 by way of the half angle: asin(x) = π/2 - 2 asin(sqrt((1 - x) / 2)). Beyond 1 the root
// is NaN, and so is the result.
TESSERA_INLINE float asin(float x) {
  const uint32_t sign = bits_of(x) & 0x80000000u;
  const float magnitude = float_of(bits_of(x) & 0x7fffffffu);
  const bool small = magnitude <= 0.5f;
  const float angle = asin_near_zero(small ? magnitude : sqrt(0.5f * (1 - magnitude)));
  const float large = 0x1.921fb6p+0f - (2 * angle - -0x1.777a5cp-25f);
  const float result = float_of(bits_of(small ? angle : large) | sign);
  return magnitude <= 1 ? result : __builtin_nanf("");
}

TESSERA_INLINE float acos(float x) {
  const float magnitude = float_of(bits_of(x) & 0x7fffffffu);
  const bool small = magnitude <= 0.5f;
  const float angle = asin_near_zero(small ? magnitude : sqrt(0.5f * (1 - magnitude)));
  const float signed_angle = float_of(bits_of(angle) | (bits_of(x) & 0x80000000u));
  const float middle = 0x1.921fb6p+0f - (signed_angle - -0x1.777a5cp-25f);
  const float left = 0x1.921fb6p+1f - (2 * angle - -0x1.777a5cp-24f);
  const float result = small ? middle : x > 0 ? 2 * angle : left;
  return magnitude <= 1 ? result : __builtin_nanf("");
}

// The quotient of the smaller by the greater never overflows; 0 / 0 and ∞ / ∞ stand for 0 and 1.
TESSERA_INLINE float atan2(float y, float x) {
  const float up = float_of(bits_of(y) & 0x7fffffffu), along = float_of(bits_of(x) & 0x7fffffffu);
  const bool steep = up > along;
  const float low = steep ? along : up, high = steep ? up : along;
  const float quotient = low == high ? (low == 0 ? 0.f : 1.f) : low / high;
  const float angle = atan(quotient);
  const float first = steep ? 0x1.921fb6p+0f - (angle - -0x1.777a5cp-25f) : angle;
  const bool left = (bits_of(x) & 0x80000000u) != 0;
  const float both = left ? 0x1.921fb6p+1f - (first - -0x1.777a5cp-24f) : first;
  const float result = float_of(bits_of(both) | (bits_of(y) & 0x80000000u));
  return x != x || y != y ? __builtin_nanf("") : result;
}
