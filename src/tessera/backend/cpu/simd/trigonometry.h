// sin, cos, tan and atan of floats, in the manner of math.h. Included by simd/loops.cpp. The
// polynomials are fits by Chebyshev interpolation.

// sin, cos and tan hold for arguments below this; elementwise.h computes the others by libm.
inline constexpr float kTrigonometryReach = 0x1p18f;

// x = k π/2 + r with |r| < 0.81: returns r, sets the low bits of k. In f64, whose digits suffice
// for all x within reach, also where r nearly vanishes.
TESSERA_INLINE float reduce_half_pi(float x, uint32_t& k) {
  // Adding 1.5 * 2^23 leaves the rounded integer in the low mantissa bits.
  const float shifted = x * 0x1.45f306p-1f + 0x1.8p23f;
  k = bits_of(shifted);
  const double n = double(shifted - 0x1.8p23f);
  return float((double(x) - n * 0x1.921fb544p+0) - n * 0x1.0b4611a626331p-34);
}

TESSERA_INLINE float sin_near_zero(float r) {
  const float z = r * r;
  float p = 2.722854787862161e-06f;
  p = fused(p, z, -0.00019839916785713285f);
  p = fused(p, z, 0.008333331905305386f);
  p = fused(p, z, -0.1666666716337204f);
  return r + r * z * p;
}

TESSERA_INLINE float cos_near_zero(float r) {
  const float z = r * r;
  float p = 2.4530298105673864e-05f;
  p = fused(p, z, -0.0013888218672946095f);
  p = fused(p, z, 0.0416666641831398f);
  return (1 - 0.5f * z) + z * z * p;
}

// sin(r + k π/2).
TESSERA_INLINE float sin_of_quadrant(float r, uint32_t k) {
  const float y = (k & 1) != 0 ? cos_near_zero(r) : sin_near_zero(r);
  return float_of(bits_of(y) ^ ((k & 2) << 30));
}

TESSERA_INLINE float sin(float x) {
  uint32_t k;
  const float r = reduce_half_pi(x, k);
  return x == 0 ? x : sin_of_quadrant(r, k);  // -0 stays -0
}

TESSERA_INLINE float cos(float x) {
  uint32_t k;
  const float r = reduce_half_pi(x, k);
  return sin_of_quadrant(r, k + 1);
}

TESSERA_INLINE float tan(float x) {
  uint32_t k;
  const float r = reduce_half_pi(x, k), s = sin_near_zero(r), c = cos_near_zero(r);
  const float y = (k & 1) != 0 ? -(c / s) : s / c;
  return x == 0 ? x : y;
}

// The arguments are brought below tan(π/8), by the angles π/4 and π/2.
TESSERA_INLINE float atan(float x) {
  const uint32_t sign = bits_of(x) & 0x80000000u;
  const float t = float_of(bits_of(x) & 0x7fffffffu);
  const bool large = t > 2.41421356f, middle = t > 0.414213562f;
  const float numerator = large ? -1.f : middle ? t - 1 : t;
  const float q = numerator / (large ? t : middle ? t + 1 : 1.f);
  const float z = q * q;
  float p = -0.06451597064733505f;
  p = fused(p, z, 0.10743631422519684f);
  p = fused(p, z, -0.14263945817947388f);
  p = fused(p, z, 0.19999539852142334f);
  p = fused(p, z, -0.3333333134651184f);
  const float high = large ? 0x1.921fb6p+0f : middle ? 0x1.921fb6p-1f : 0.f;
  const float low = large ? -0x1.777a5cp-25f : middle ? -0x1.777a5cp-26f : 0.f;
  return float_of(bits_of(high + (q + (q * z * p + low))) | sign);
}
