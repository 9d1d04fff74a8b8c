#include "tessera/tensor/creation.h"

#include <cmath>

#include "tessera/tensor/elementwise.h"
#include "tessera/tensor/op_support.h"
#include "tessera/tensor/structure.h"

namespace tessera {

Tensor full(const Shape& shape, const Scalar& value, DType dtype, std::source_location line) {
  set_line(line);
  for (const int64_t extent : shape) {
    if (extent < 0) fail_here("full: expected extents of at least 0, got ", shape);
  }
  return broadcast_to(literal(value, dtype), shape);
}
Tensor zeros(const Shape& shape, DType dtype, std::source_location line) {
  return full(shape, 0, dtype, line);
}
Tensor ones(const Shape& shape, DType dtype, std::source_location line) {
  return full(shape, 1, dtype, line);
}
Tensor full_like(In x, const Scalar& value) { return full(x.shape(), value, x.dtype()); }
Tensor zeros_like(In x) { return full_like(x, 0); }
Tensor ones_like(In x) { return full_like(x, 1); }

Tensor iota(const Shape& shape, int64_t axis, DType dtype) {
  return Tensor(graph::iota(dtype, shape, axis_of("iota", axis, shape.rank())));
}
Tensor arange(int64_t n, DType dtype) { return iota({n}, 0, dtype); }

Tensor arange(const Scalar& start, const Scalar& stop, const Scalar& step,
              std::optional<DType> asked) {
  const bool whole = start.is_integer() && stop.is_integer() && step.is_integer();
  const DType dtype = asked.value_or(whole ? DType::i64 : DType::f32);
  double count = std::ceil((stop.real() - start.real()) / step.real());
  if (!(std::fabs(count) < 0x1p53)) {
    fail("arange: expected finite bounds and a step other than 0, got ", start.real(), ", ",
         stop.real(), " and ", step.real());
  }
  if (whole) {
    // Exact also where f64 is not.
    int64_t distance = 0;
    if (!__builtin_sub_overflow(stop.integer(), start.integer(), &distance)) {
      const int64_t by = step.integer();
      count = double(distance / by + (distance % by != 0 && (distance < 0) == (by < 0)));
    }
  }
  const int64_t n = std::max(int64_t(count), int64_t{0});
  if (whole && !is_float(dtype)) {
    const Tensor position = iota({n}, 0);
    return cast(position * literal(step, DType::i64) + literal(start, DType::i64), dtype);
  }
  return cast(iota({n}, 0, DType::f64) * step.real() + start.real(), dtype);
}

Tensor linspace(double start, double stop, int64_t n, DType dtype) {
  if (n < 0) fail("linspace: expected at least 0 numbers, got ", n);
  if (!is_float(dtype)) fail("linspace: expected a floating-point dtype, got ", dtype);
  if (n == 1) return full({1}, start, dtype);
  // From both ends, so that the last number is exactly `stop`.
  const Tensor i = iota({n}, 0, DType::f64);
  const double step = (stop - start) / double(n - 1);
  return cast(where(i < double(n) / 2, start + i * step, stop - (double(n - 1) - i) * step), dtype);
}

Tensor eye(int64_t rows, int64_t columns, DType dtype) {
  if (rows < 0 || columns < 0) {
    fail("eye: expected extents of at least 0, got ", rows, " and ", columns);
  }
  return cast(iota({rows, columns}, 0) == iota({rows, columns}, 1), dtype);
}
Tensor eye(int64_t rows, DType dtype) { return eye(rows, rows, dtype); }

}  // namespace tessera
