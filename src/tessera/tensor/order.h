// Sorting and counting. NaN counts as greater than every number; equal elements keep their order.
#pragma once

#include "tessera/tensor/tensor.h"

namespace tessera {

struct Ordered {
  Tensor values;
  Tensor indices;  // i64: where in x along the axis each value was
};
Ordered sort(In x, int64_t axis = -1, bool descending = false);
Tensor argsort(In x, int64_t axis = -1, bool descending = false);
// A bool is not an axis.
template <std::same_as<bool> Flag>
Ordered sort(In x, Flag) = delete;
template <std::same_as<bool> Flag>
Tensor argsort(In x, Flag) = delete;
// The k greatest (or least) elements along the axis, the greatest (least) first.
Ordered topk(In x, int64_t k, int64_t axis = -1, bool largest = true);

struct UniqueCounts {
  Tensor values;   // (n) each element once, in rising order; all NaNs are one, and so are -0 and 0
  Tensor counts;   // (n) i64: how often
  Tensor inverse;  // of x's shape, i64: which of `values` an element is
};
// Evaluates x and counts on the host: the result's shape depends on the data.
UniqueCounts unique_counts(In x);

}  // namespace tessera
