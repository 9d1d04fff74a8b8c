#include "tessera/tensor/reduce.h"

#include <cmath>

#include "tessera/tensor/creation.h"
#include "tessera/tensor/elementwise.h"
#include "tessera/tensor/op_support.h"
#include "tessera/tensor/structure.h"

namespace tessera {

namespace {

Tensor drop_axes(const Tensor& reduced, const Dims& axes, bool keepdims) {
  if (keepdims) return reduced;
  Shape shape;
  for (int i = 0; i < reduced.rank(); ++i) {
    if (!axes.contains(i)) shape.push_back(reduced.shape()[i]);
  }
  return Tensor(graph::reshape(reduced.value(), shape));
}

Tensor reduce(Op op, const Tensor& x, const Dims& axes, bool keepdims) {
  const Dims normalized = axes_of(name(op), axes, x);
  return drop_axes(Tensor(graph::reduce(op, x.value(), normalized)), normalized, keepdims);
}

// How many elements a reduction folds. Next to an extent of 0, the others may multiply to more than
// an integer holds.
double count_of(const Tensor& x, const Dims& normalized) {
  double count = 1;
  for (const int64_t axis : normalized) count *= double(x.shape()[int(axis)]);
  return count;
}

Tensor is_nonzero(const Tensor& x) { return x.dtype() == DType::boolean ? x : x != 0; }

// x seen from the other end: its greatest element is where x's least is. -x would overflow
// integers.
Tensor reversed(const Tensor& x) {
  if (is_float(x.dtype())) return -x;
  return x.dtype() == DType::boolean ? logical_not(x) : bitwise_not(x);
}

// The root has no slope at 0, where a deviation or norm of 0 must pass the gradient 0, not 0 · inf.
Tensor root_or_zero(const Tensor& x) {
  const Tensor nothing = x == 0;
  return where(nothing, 0, sqrt(where(nothing, 1, x)));
}

}  // namespace

Tensor sum(In x, const Dims& axes, bool keepdims) {
  return reduce(Op::sum, as_total(x), axes, keepdims);
}
Tensor prod(In x, const Dims& axes, bool keepdims) {
  return reduce(Op::prod, as_total(x), axes, keepdims);
}
Tensor max(In x, const Dims& axes, bool keepdims) { return reduce(Op::max, x, axes, keepdims); }
Tensor min(In x, const Dims& axes, bool keepdims) { return reduce(Op::min, x, axes, keepdims); }

Tensor any(In x, const Dims& axes, bool keepdims) {
  const Dims normalized = axes_of("any", axes, x);
  if (count_of(x, normalized) == 0) return sum(x, axes, keepdims) != 0;
  return max(is_nonzero(x), axes, keepdims);
}

Tensor all(In x, const Dims& axes, bool keepdims) {
  const Dims normalized = axes_of("all", axes, x);
  if (count_of(x, normalized) == 0) return sum(x, axes, keepdims) == 0;
  return min(is_nonzero(x), axes, keepdims);
}

Tensor mean(In x, const Dims& axes, bool keepdims) {
  const double count = count_of(x, axes_of("mean", axes, x));
  if (count == 0) fail_here("mean: no elements to average in ", x.shape());
  // Half types must not hold the sum: 65520 elements of 1 are more than f16 can count.
  return cast(sum(as_wide(x), axes, keepdims) / count, as_float(x).dtype());
}

Tensor var(In x, const Dims& axes, bool keepdims, double correction) {
  const double count = count_of(x, axes_of("var", axes, x));
  if (!(count - correction > 0)) {
    fail_here("var: expected more than ", correction, " elements, got ", count, " in ", x.shape());
  }
  const Tensor wide = as_wide(x);
  const Tensor distance = wide - mean(wide, axes, true);
  return cast(sum(square(distance), axes, keepdims) / (count - correction), as_float(x).dtype());
}

Tensor stddev(In x, const Dims& axes, bool keepdims, double correction) {
  return cast(root_or_zero(var(as_wide(x), axes, keepdims, correction)), as_float(x).dtype());
}

Tensor norm(In x, double p, const Dims& axes, bool keepdims) {
  if (!(p >= 0)) fail_here("norm: expected p of at least 0, got ", p);
  const Tensor wide = as_wide(x);
  Tensor result;
  if (std::isinf(p)) {
    result = max(abs(wide), axes, keepdims);
  } else if (p == 0) {
    result = sum(cast(wide != 0, wide.dtype()), axes, keepdims);
  } else if (p == 1) {
    result = sum(abs(wide), axes, keepdims);
  } else if (p == 2) {
    result = root_or_zero(sum(square(wide), axes, keepdims));
  } else {
    const Tensor nothing = wide == 0;
    const Tensor terms = where(nothing, 0, pow(abs(where(nothing, 1, wide)), p));
    const Tensor powers = sum(terms, axes, keepdims);
    result = where(powers == 0, 0, pow(where(powers == 0, 1, powers), 1 / p));
  }
  return cast(result, as_float(x).dtype());
}

Tensor logsumexp(In x, const Dims& axes, bool keepdims) {
  const Dims normalized = axes_of("logsumexp", axes, x);
  const Tensor input = as_wide(x);
  // Shifting by the maximum changes nothing but overflow, so no gradient needs to pass through it.
  // A row of -inf, or with an inf, is shifted by nothing: inf - inf would be NaN.
  const Tensor greatest(graph::stop_gradient(max(input, normalized, true).value()));
  const Tensor top = where(isfinite(greatest), greatest, 0);
  const Tensor result = log(sum(exp(input - top), normalized, true)) + top;
  return cast(drop_axes(result, normalized, keepdims), as_float(x).dtype());
}

Tensor argmax(In x, int64_t axis, bool keepdims) {
  return reduce(Op::argmax, x, {axis_of("argmax", axis, x)}, keepdims);
}
Tensor argmin(In x, int64_t axis, bool keepdims) {
  return reduce(Op::argmax, reversed(x), {axis_of("argmin", axis, x)}, keepdims);
}

Tensor cumsum(In x, int64_t axis) {
  return Tensor(graph::cumsum(as_total(x).value(), axis_of("cumsum", axis, x)));
}
Tensor cumprod(In x, int64_t axis) {
  return Tensor(graph::cumprod(as_total(x).value(), axis_of("cumprod", axis, x)));
}

}  // namespace tessera
