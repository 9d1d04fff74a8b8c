#include "tessera/base/dtype.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <ostream>

namespace tessera {

namespace {

constexpr std::array<DTypeInfo, kDTypeCount> kInfo = {{
    {"f32", 4, true, true},
    {"f64", 8, true, true},
    {"f16", 2, true, true},
    {"bf16", 2, true, true},
    {"i8", 1, false, true},
    {"i32", 4, false, true},
    {"i64", 8, false, true},
    {"u8", 1, false, false},
    {"u32", 4, false, false},
    {"bool", 1, false, false},
}};

// The float next to `value` towards zero, with its last bit set where that lost something: rounding
// the result once more then gives what rounding `value` itself would.
float round_to_odd(double value) {
  const float nearest = float(value);
  if (double(nearest) == value || value != value) return nearest;
  const bool too_far = std::abs(double(nearest)) > std::abs(value);
  const uint32_t bits = std::bit_cast<uint32_t>(nearest) - (too_far ? 1 : 0);
  return std::bit_cast<float>(bits | 1);
}

// NaN becomes 0, what is out of range the nearest end.
int64_t saturate(double value) {
  if (value != value) return 0;
  if (value >= 0x1p63) return INT64_MAX;
  if (value < -0x1p63) return INT64_MIN;
  return int64_t(value);
}

}  // namespace

const DTypeInfo& info(DType dtype) { return kInfo[static_cast<size_t>(dtype)]; }

std::optional<DType> dtype_from_name(std::string_view name) {
  for (int i = 0; i < kDTypeCount; ++i) {
    if (kInfo[size_t(i)].name == name) return static_cast<DType>(i);
  }
  return std::nullopt;
}

DType promote(DType a, DType b) {
  if (a == b) return a;
  if (is_float(a) != is_float(b)) return is_float(a) ? a : b;
  if (is_float(a)) {
    if (size_of(a) == size_of(b)) return DType::f32;  // f16 with bf16
    return size_of(a) > size_of(b) ? a : b;
  }
  if (a == DType::boolean) return b;
  if (b == DType::boolean) return a;
  if (info(a).is_signed == info(b).is_signed) return size_of(a) > size_of(b) ? a : b;
  // Mixed signs: the signed one when it is wider, else the next wider signed type.
  const DType s = info(a).is_signed ? a : b;
  const DType u = info(a).is_signed ? b : a;
  if (size_of(s) > size_of(u)) return s;
  return size_of(u) == 1 ? DType::i32 : DType::i64;
}

uint64_t scalar_bits(DType dtype, double value) {
  if (is_float(dtype)) {
    // Rounded to the type first, so that constants that store alike also compare alike.
    if (dtype == DType::f32) value = double(float(value));
    if (dtype == DType::f16) value = double(float(f16(round_to_odd(value))));
    if (dtype == DType::bf16) value = double(float(bf16(round_to_odd(value))));
    return std::bit_cast<uint64_t>(value);
  }
  if (dtype == DType::boolean) return scalar_bits(dtype, int64_t(value != 0));
  return scalar_bits(dtype, saturate(value));
}

uint64_t scalar_bits(DType dtype, int64_t value) {
  if (is_float(dtype)) return scalar_bits(dtype, static_cast<double>(value));
  switch (dtype) {
    case DType::i8: value = int8_t(value); break;
    case DType::i32: value = int32_t(value); break;
    case DType::u8: value = uint8_t(value); break;
    case DType::u32: value = uint32_t(value); break;
    case DType::boolean: value = value != 0; break;
    default: break;
  }
  return std::bit_cast<uint64_t>(value);
}

double scalar_as_double(DType dtype, uint64_t bits) {
  return is_float(dtype) ? std::bit_cast<double>(bits) : double(std::bit_cast<int64_t>(bits));
}

int64_t scalar_as_int(DType dtype, uint64_t bits) {
  return is_float(dtype) ? saturate(std::bit_cast<double>(bits)) : std::bit_cast<int64_t>(bits);
}

std::ostream& operator<<(std::ostream& out, DType dtype) { return out << name(dtype); }

}  // namespace tessera
