#include "tessera/base/half.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace tessera {
namespace {

// A 16-bit format by its definition: sign, exponent, mantissa.
struct Format {
  int mantissa_bits;
  int bias;
  uint16_t infinity;

  // The magnitude of `bits` (without sign); infinity counts as the next power of two, which is the
  // value that rounding compares with.
  double magnitude(int bits) const {
    const int exponent = bits >> mantissa_bits;
    const int mantissa = bits & ((1 << mantissa_bits) - 1);
    if (exponent == 0) return std::ldexp(mantissa, 1 - bias - mantissa_bits);
    return std::ldexp((1 << mantissa_bits) + mantissa, exponent - bias - mantissa_bits);
  }

  // Nearest by search over all values, ties to the even one.
  uint16_t nearest(float f) const {
    const uint16_t sign = std::signbit(f) ? 0x8000 : 0;
    const double x = std::fabs(double(f));
    int low = 0, high = infinity;
    if (x >= magnitude(high)) return uint16_t(sign | infinity);
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      (magnitude(middle) <= x ? low : high) = middle;
    }
    const double below = x - magnitude(low), above = magnitude(high) - x;
    const bool up = above < below || (above == below && (high & 1) == 0);
    return uint16_t(sign | (up ? high : low));
  }
};

constexpr Format kF16{10, 15, 0x7c00};
constexpr Format kBf16{7, 127, 0x7f80};

template <class Half>
constexpr Format kFormat = std::is_same_v<Half, f16> ? kF16 : kBf16;

template <class Half>
Half from_bits(int bits) {
  Half h;
  h.bits = uint16_t(bits);
  return h;
}

// Every representable value, the ties between neighbours, and the floats right beside both.
std::vector<float> edge_values(const Format& format) {
  std::vector<float> values = {0.0f, std::numeric_limits<float>::denorm_min(),
                               std::numeric_limits<float>::min(), std::numeric_limits<float>::max(),
                               std::numeric_limits<float>::infinity()};
  for (int bits = 0; bits < format.infinity; ++bits) {
    const double value = format.magnitude(bits), next = format.magnitude(bits + 1);
    for (const float f : {float(value), float(value / 2 + next / 2)}) {
      values.push_back(f);
      values.push_back(std::nextafter(f, 0.0f));
      values.push_back(std::nextafter(f, std::numeric_limits<float>::infinity()));
    }
  }
  return values;
}

template <class Half>
class HalfTest : public testing::Test {};
using HalfTypes = testing::Types<f16, bf16>;
TYPED_TEST_SUITE(HalfTest, HalfTypes);

TYPED_TEST(HalfTest, EveryValueWidensByDefinition) {
  const Format& format = kFormat<TypeParam>;
  for (int bits = 0; bits < 65536; ++bits) {
    const float widened = from_bits<TypeParam>(bits);
    const int magnitude = bits & 0x7fff;
    ASSERT_EQ(std::signbit(widened), bits >= 0x8000) << bits;
    if (magnitude > format.infinity) {
      ASSERT_TRUE(std::isnan(widened)) << bits;
    } else if (magnitude == format.infinity) {
      ASSERT_TRUE(std::isinf(widened)) << bits;
    } else {
      ASSERT_EQ(std::fabs(double(widened)), format.magnitude(magnitude)) << bits;
    }
  }
}

TYPED_TEST(HalfTest, EveryValueSurvivesARoundTrip) {
  const Format& format = kFormat<TypeParam>;
  for (int bits = 0; bits < 65536; ++bits) {
    const TypeParam back(float(from_bits<TypeParam>(bits)));
    if ((bits & 0x7fff) > format.infinity) {
      const int quiet = 1 << (format.mantissa_bits - 1);
      ASSERT_GT(back.bits & 0x7fff, format.infinity) << bits;
      ASSERT_TRUE(back.bits & quiet) << bits;
      ASSERT_EQ(back.bits & 0x8000, bits & 0x8000) << bits;
    } else {
      ASSERT_EQ(back.bits, bits);
    }
  }
}

TYPED_TEST(HalfTest, EdgesRoundToNearestEven) {
  const Format& format = kFormat<TypeParam>;
  for (const float f : edge_values(format)) {
    ASSERT_EQ(TypeParam(f).bits, format.nearest(f)) << f;
    ASSERT_EQ(TypeParam(-f).bits, format.nearest(-f)) << -f;
  }
}

TYPED_TEST(HalfTest, RandomFloatsRoundToNearestEven) {
  const Format& format = kFormat<TypeParam>;
  std::mt19937 random(7);
  std::uniform_real_distribution<float> exponent(-30.0f, 18.0f);
  for (int i = 0; i < 300000; ++i) {
    // Random bits reach every exponent of f32; the second kind stays near the range of f16.
    const float wild = std::bit_cast<float>(uint32_t(random()));
    const float near = std::exp2(exponent(random));
    ASSERT_EQ(TypeParam(near).bits, format.nearest(near)) << near;
    if (std::isnan(wild)) continue;
    ASSERT_EQ(TypeParam(wild).bits, format.nearest(wild)) << wild;
  }
}

TYPED_TEST(HalfTest, EveryNanBecomesAQuietNanOfTheSameSign) {
  const Format& format = kFormat<TypeParam>;
  for (const uint32_t bits : {0x7f800001u, 0x7fbfffffu, 0x7fc00000u, 0x7fffffffu, 0xff800001u,
                              0xffc00000u, 0xffffffffu, 0x7f80ffffu, 0x7f810000u}) {
    const uint16_t half = TypeParam(std::bit_cast<float>(bits)).bits;
    EXPECT_GT(half & 0x7fff, format.infinity) << std::hex << bits;
    EXPECT_TRUE(half & (1 << (format.mantissa_bits - 1))) << std::hex << bits;
    EXPECT_EQ(half >> 15, bits >> 31) << std::hex << bits;
  }
}

TEST(Half, KnownValues) {
  EXPECT_EQ(f16(1.0f).bits, 0x3c00);
  EXPECT_EQ(f16(-2.0f).bits, 0xc000);
  EXPECT_EQ(f16(65504.0f).bits, 0x7bff);
  EXPECT_EQ(f16(65519.996f).bits, 0x7bff);
  EXPECT_EQ(f16(65520.0f).bits, 0x7c00);
  EXPECT_EQ(f16(0x1p-24f).bits, 0x0001);
  EXPECT_EQ(f16(0x1p-25f).bits, 0x0000);  // a tie, to even
  EXPECT_EQ(f16(0x1.8p-24f).bits, 0x0002);
  EXPECT_EQ(bf16(1.0f).bits, 0x3f80);
  EXPECT_EQ(bf16(0x1.01p0f).bits, 0x3f80);  // a tie, to even
  EXPECT_EQ(bf16(0x1.03p0f).bits, 0x3f82);
  EXPECT_EQ(bf16(std::numeric_limits<float>::max()).bits, 0x7f80);
}

}  // namespace
}  // namespace tessera
