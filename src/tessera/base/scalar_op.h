// ScalarOp: the functions of scalar_ops.def as an enumeration with their facts, shared by the
// graph's op table, KernelIR, every backend's loops and the source renderer.
#pragma once

#include <cstdint>
#include <string_view>

#include "tessera/base/dtype.h"

namespace tessera {

enum class ScalarOp : uint8_t {
#define SCALAR_OP(name, ...) name,
#include "tessera/base/scalar_ops.def"
#undef SCALAR_OP
  where,    // (bool, T, T) -> T: a ? b : c
  uniform,  // (i64 index, i64 key, i64 offset) -> f32 in [0, 1): Philox, see base/philox.h
  count,
};

inline constexpr int kScalarOpCount = static_cast<int>(ScalarOp::count);

enum class ScalarIn : uint8_t { any, number, floating, integer, integral, logical, mixed };

// The element types that a row's In stands for (`mixed` rows check their own).
constexpr bool takes_floats(ScalarIn in) {
  return in == ScalarIn::any || in == ScalarIn::number || in == ScalarIn::floating;
}
constexpr bool takes_bool(ScalarIn in) {
  return in == ScalarIn::any || in == ScalarIn::integral || in == ScalarIn::logical;
}
constexpr bool takes_integers(ScalarIn in) {
  return in != ScalarIn::floating && in != ScalarIn::logical;
}

enum class ScalarOut : uint8_t { same, logical };
enum class ScalarAlgebra : uint8_t { plain, commutative };

struct ScalarOpInfo {
  std::string_view name;
  int arity;
  ScalarIn in;
  ScalarOut out;
  ScalarAlgebra algebra;
  double ulp;
  std::string_view expression;  // C source over a, b, c
};

const ScalarOpInfo& info(ScalarOp op);
inline std::string_view name(ScalarOp op) { return info(op).name; }

// Whether `op` takes operands of `dtype` (for `where`: as its second and third operand).
bool accepts(ScalarOp op, DType dtype);

}  // namespace tessera
