// Element types, their facts in one table, and `visit` to go from a value to a type.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <iosfwd>
#include <optional>
#include <string_view>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/base/half.h"

namespace tessera {

enum class DType : uint8_t { f32, f64, f16, bf16, i8, i32, i64, u8, u32, boolean };

inline constexpr int kDTypeCount = 10;

struct DTypeInfo {
  std::string_view name;
  int size;  // bytes
  bool is_float;
  bool is_signed;  // integers; floats are signed
};

const DTypeInfo& info(DType dtype);
std::optional<DType> dtype_from_name(std::string_view name);

inline std::string_view name(DType dtype) { return info(dtype).name; }
inline int size_of(DType dtype) { return info(dtype).size; }
inline bool is_float(DType dtype) { return info(dtype).is_float; }
inline bool is_half(DType dtype) { return dtype == DType::f16 || dtype == DType::bf16; }
inline bool is_integer(DType dtype) { return !is_float(dtype) && dtype != DType::boolean; }
inline std::string_view to_string(DType dtype) { return name(dtype); }
std::ostream& operator<<(std::ostream& out, DType dtype);

// The type a kernel computes in: half types in f32, all others in themselves.
inline DType compute_type(DType dtype) { return is_half(dtype) ? DType::f32 : dtype; }

// The smallest type that holds both: bool < integers < floats; mixed signs widen; f16 with bf16 is
// f32. docs/dtypes.md has the table.
DType promote(DType a, DType b);

template <class T>
struct dtype_of_t;
template <>
struct dtype_of_t<float> {
  static constexpr DType value = DType::f32;
};
template <>
struct dtype_of_t<double> {
  static constexpr DType value = DType::f64;
};
template <>
struct dtype_of_t<f16> {
  static constexpr DType value = DType::f16;
};
template <>
struct dtype_of_t<bf16> {
  static constexpr DType value = DType::bf16;
};
template <>
struct dtype_of_t<int8_t> {
  static constexpr DType value = DType::i8;
};
template <>
struct dtype_of_t<int32_t> {
  static constexpr DType value = DType::i32;
};
template <>
struct dtype_of_t<int64_t> {
  static constexpr DType value = DType::i64;
};
template <>
struct dtype_of_t<uint8_t> {
  static constexpr DType value = DType::u8;
};
template <>
struct dtype_of_t<uint32_t> {
  static constexpr DType value = DType::u32;
};
template <>
struct dtype_of_t<bool> {
  static constexpr DType value = DType::boolean;
};
template <class T>
inline constexpr DType dtype_of = dtype_of_t<T>::value;

// Calls f.template operator()<T>() with the C++ type of `dtype`.
template <class F>
decltype(auto) visit(DType dtype, F&& f) {
  switch (dtype) {
    case DType::f32: return f.template operator()<float>();
    case DType::f64: return f.template operator()<double>();
    case DType::f16: return f.template operator()<f16>();
    case DType::bf16: return f.template operator()<bf16>();
    case DType::i8: return f.template operator()<int8_t>();
    case DType::i32: return f.template operator()<int32_t>();
    case DType::i64: return f.template operator()<int64_t>();
    case DType::u8: return f.template operator()<uint8_t>();
    case DType::u32: return f.template operator()<uint32_t>();
    case DType::boolean: return f.template operator()<bool>();
  }
  TESSERA_ASSERT(!"a DType outside its enumeration");
  std::abort();
}

// A scalar as 8 bytes: a double's bits for floats, an int64's for the rest. Equal bits mean equal
// constants, so -0.0 and 0.0 differ and every NaN equals itself.
uint64_t scalar_bits(DType dtype, double value);
uint64_t scalar_bits(DType dtype, int64_t value);
double scalar_as_double(DType dtype, uint64_t bits);
int64_t scalar_as_int(DType dtype, uint64_t bits);

}  // namespace tessera
