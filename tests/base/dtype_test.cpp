#include "tessera/base/dtype.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <set>
#include <string>

namespace tessera {
namespace {

constexpr std::array<std::string_view, kDTypeCount> kNames = {"f32", "f64", "f16", "bf16", "i8",
                                                              "i32", "i64", "u8",  "u32",  "bool"};

// Row and column in the order of kNames.
constexpr std::array<std::array<std::string_view, kDTypeCount>, kDTypeCount> kPromoted = {{
    {"f32", "f64", "f32", "f32", "f32", "f32", "f32", "f32", "f32", "f32"},
    {"f64", "f64", "f64", "f64", "f64", "f64", "f64", "f64", "f64", "f64"},
    {"f32", "f64", "f16", "f32", "f16", "f16", "f16", "f16", "f16", "f16"},
    {"f32", "f64", "f32", "bf16", "bf16", "bf16", "bf16", "bf16", "bf16", "bf16"},
    {"f32", "f64", "f16", "bf16", "i8", "i32", "i64", "i32", "i64", "i8"},
    {"f32", "f64", "f16", "bf16", "i32", "i32", "i64", "i32", "i64", "i32"},
    {"f32", "f64", "f16", "bf16", "i64", "i64", "i64", "i64", "i64", "i64"},
    {"f32", "f64", "f16", "bf16", "i32", "i32", "i64", "u8", "u32", "u8"},
    {"f32", "f64", "f16", "bf16", "i64", "i64", "i64", "u32", "u32", "u32"},
    {"f32", "f64", "f16", "bf16", "i8", "i32", "i64", "u8", "u32", "bool"},
}};

DType at(size_t i) { return static_cast<DType>(i); }

TEST(DType, NamesGoBothWays) {
  for (size_t i = 0; i < kDTypeCount; ++i) {
    EXPECT_EQ(name(at(i)), kNames[i]);
    EXPECT_EQ(to_string(at(i)), kNames[i]);
    EXPECT_EQ(dtype_from_name(kNames[i]), at(i));
  }
  EXPECT_EQ(dtype_from_name("f128"), std::nullopt);
  EXPECT_EQ(dtype_from_name(""), std::nullopt);
}

TEST(DType, PromotionTable) {
  for (size_t a = 0; a < kDTypeCount; ++a) {
    for (size_t b = 0; b < kDTypeCount; ++b) {
      EXPECT_EQ(name(promote(at(a), at(b))), kPromoted[a][b]) << kNames[a] << " " << kNames[b];
      EXPECT_EQ(kPromoted[a][b], kPromoted[b][a]) << kNames[a] << " " << kNames[b];
    }
  }
}

TEST(DType, VisitFindsTheTypeOfTheSameSizeAndName) {
  std::set<DType> seen;
  for (size_t i = 0; i < kDTypeCount; ++i) {
    visit(at(i), [&]<class T>() {
      EXPECT_EQ(dtype_of<T>, at(i));
      EXPECT_EQ(size_of(at(i)), int(sizeof(T)));
      EXPECT_EQ(is_float(at(i)), (std::is_convertible_v<T, float> && !std::is_integral_v<T>));
      seen.insert(dtype_of<T>);
    });
  }
  EXPECT_EQ(seen.size(), size_t(kDTypeCount));
}

TEST(DType, Classes) {
  for (size_t i = 0; i < kDTypeCount; ++i) {
    const DType dtype = at(i);
    const bool half = dtype == DType::f16 || dtype == DType::bf16;
    EXPECT_EQ(is_half(dtype), half);
    EXPECT_EQ(compute_type(dtype), half ? DType::f32 : dtype);
    EXPECT_EQ(int(is_float(dtype)) + int(is_integer(dtype)) + int(dtype == DType::boolean), 1);
  }
  EXPECT_TRUE(info(DType::i8).is_signed);
  EXPECT_FALSE(info(DType::u32).is_signed);
  EXPECT_FALSE(info(DType::boolean).is_signed);
}

TEST(ScalarBits, FloatsAreRoundedToTheirType) {
  EXPECT_EQ(scalar_bits(DType::f64, 0.1), std::bit_cast<uint64_t>(0.1));
  EXPECT_EQ(scalar_bits(DType::f32, 0.1), std::bit_cast<uint64_t>(double(0.1f)));
  EXPECT_EQ(scalar_bits(DType::f32, 0.1), scalar_bits(DType::f32, double(0.1f)));
  EXPECT_NE(scalar_bits(DType::f32, 0.1), scalar_bits(DType::f64, 0.1));
  EXPECT_EQ(scalar_as_double(DType::f16, scalar_bits(DType::f16, 1.0 + 0x1p-11)), 1.0);
  EXPECT_EQ(scalar_as_double(DType::bf16, scalar_bits(DType::bf16, 3.0e38)), 0x1.c4p127);
  EXPECT_TRUE(std::isinf(scalar_as_double(DType::f16, scalar_bits(DType::f16, 1e5))));
}

TEST(ScalarBits, ZerosDifferAndNanEqualsItself) {
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    EXPECT_NE(scalar_bits(dtype, 0.0), scalar_bits(dtype, -0.0)) << name(dtype);
    EXPECT_EQ(scalar_bits(dtype, nan), scalar_bits(dtype, nan)) << name(dtype);
    EXPECT_TRUE(std::isnan(scalar_as_double(dtype, scalar_bits(dtype, nan)))) << name(dtype);
  }
}

TEST(ScalarBits, IntegersWrapLikeTheirType) {
  const auto round_trip = [](DType dtype, int64_t value) {
    return scalar_as_int(dtype, scalar_bits(dtype, value));
  };
  EXPECT_EQ(round_trip(DType::i8, 200), -56);
  EXPECT_EQ(round_trip(DType::u8, -1), 255);
  EXPECT_EQ(round_trip(DType::i32, int64_t(1) << 31), std::numeric_limits<int32_t>::min());
  EXPECT_EQ(round_trip(DType::u32, -1), 4294967295);
  EXPECT_EQ(round_trip(DType::boolean, 42), 1);
  EXPECT_EQ(round_trip(DType::boolean, 0), 0);
  // 2^53 + 1 has no double: integers must not pass through one.
  EXPECT_EQ(round_trip(DType::i64, (int64_t(1) << 53) + 1), (int64_t(1) << 53) + 1);
  EXPECT_EQ(round_trip(DType::i64, std::numeric_limits<int64_t>::min()),
            std::numeric_limits<int64_t>::min());
}

TEST(ScalarBits, CrossBetweenKinds) {
  EXPECT_EQ(scalar_bits(DType::f32, int64_t(3)), scalar_bits(DType::f32, 3.0));
  EXPECT_EQ(scalar_bits(DType::i32, -2.75), scalar_bits(DType::i32, int64_t(-2)));
  EXPECT_EQ(scalar_as_double(DType::i32, scalar_bits(DType::i32, int64_t(-7))), -7.0);
  EXPECT_EQ(scalar_as_int(DType::f64, scalar_bits(DType::f64, -7.9)), -7);
}

}  // namespace
}  // namespace tessera
