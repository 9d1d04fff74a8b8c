// What the public functions share: axes, literals and dtypes, with errors that name the line.
#pragma once

#include "tessera/graph/build.h"
#include "tessera/tensor/tensor.h"

namespace tessera {

// An axis in [-rank, rank) as one in [0, rank).
int axis_of(std::string_view op, int64_t axis, int rank);
inline int axis_of(std::string_view op, int64_t axis, const Tensor& x) {
  return axis_of(op, axis, x.rank());
}
// Sorted, without repeats; none given: all.
Dims axes_of(std::string_view op, const Dims& axes, const Tensor& x);

// Whether broadcasting gives `shape` itself.
bool broadcasts_to(const Shape& from, const Shape& shape);

// The literal in `dtype`; throws where that cannot hold it.
Tensor literal(const Scalar& s, DType dtype);
// The literal in the dtype that an expression with `x` gives it.
Tensor literal_beside(const Tensor& x, const Scalar& s);

// Integers and bool as f32.
Tensor as_float(const Tensor& x);
// As float, and half types as f32: for what is summed or squared.
Tensor as_wide(const Tensor& x);
// bool, i8 and u8 as i64: for totals, which these could not hold.
Tensor as_total(const Tensor& x);

// Sets the line that errors name, for functions without an operand to carry it.
void set_line(const std::source_location& line);

}  // namespace tessera
