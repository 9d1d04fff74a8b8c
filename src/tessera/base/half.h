// Storage types of 16 bits. Arithmetic happens in f32: convert, compute, convert back.
// Conversions round to nearest even, keep infinities, and turn NaN into a quiet NaN.
#pragma once

#include <bit>
#include <cstdint>

namespace tessera {

namespace detail {

inline float f16_to_float(uint16_t h) {
  const uint32_t sign = uint32_t(h & 0x8000u) << 16;
  const uint32_t magnitude = h & 0x7fffu;
  // Adding 112 to the exponent by a multiplication also normalises subnormals.
  const float scaled = std::bit_cast<float>(magnitude << 13) * std::bit_cast<float>(0x77800000u);
  const uint32_t special =
      (h & 0x3ffu) != 0 ? 0x7fc00000u | (uint32_t(h & 0x3ffu) << 13) : 0x7f800000u;
  const uint32_t bits = magnitude >= 0x7c00u ? special : std::bit_cast<uint32_t>(scaled);
  return std::bit_cast<float>(bits | sign);
}

inline uint16_t float_to_f16(float f) {
  const uint32_t bits = std::bit_cast<uint32_t>(f);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return uint16_t(sign | 0x7e00u);
  if (magnitude >= 0x477ff000u)
    return uint16_t(sign | 0x7c00u);  // 65520 and above round to infinity
  if (magnitude < 0x38800000u) {
    // Subnormal: adding 0.5 aligns the mantissa so that the addition itself rounds to nearest even.
    const float aligned = std::bit_cast<float>(magnitude) + 0.5f;
    return uint16_t(sign | (std::bit_cast<uint32_t>(aligned) - 0x3f000000u));
  }
  const uint32_t odd = (magnitude >> 13) & 1u;
  return uint16_t(sign | ((magnitude - 0x38000000u + 0xfffu + odd) >> 13));
}

inline float bf16_to_float(uint16_t h) { return std::bit_cast<float>(uint32_t(h) << 16); }

inline uint16_t float_to_bf16(float f) {
  const uint32_t bits = std::bit_cast<uint32_t>(f);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return uint16_t((bits >> 16) | 0x0040u);
  return uint16_t((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

}  // namespace detail

struct f16 {
  uint16_t bits = 0;
  f16() = default;
  explicit f16(float f) : bits(detail::float_to_f16(f)) {}
  operator float() const { return detail::f16_to_float(bits); }
};

struct bf16 {
  uint16_t bits = 0;
  bf16() = default;
  explicit bf16(float f) : bits(detail::float_to_bf16(f)) {}
  operator float() const { return detail::bf16_to_float(bits); }
};

}  // namespace tessera
