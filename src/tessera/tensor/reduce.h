// Reductions over `axes` (none given: all) and running totals. With keepdims the axes stay with
// extent 1.
#pragma once

#include "tessera/tensor/tensor.h"

namespace tessera {

Tensor sum(In x, const Dims& axes = {}, bool keepdims = false);  // bool, i8, u8 -> i64
Tensor mean(In x, const Dims& axes = {}, bool keepdims = false);
Tensor prod(In x, const Dims& axes = {}, bool keepdims = false);  // bool, i8, u8 -> i64
Tensor max(In x, const Dims& axes = {}, bool keepdims = false);
Tensor min(In x, const Dims& axes = {}, bool keepdims = false);
Tensor any(In x, const Dims& axes = {}, bool keepdims = false);  // bool: some element is not 0
Tensor all(In x, const Dims& axes = {}, bool keepdims = false);  // bool: no element is 0

// Mean square distance to the mean, with n - correction for n; its root.
Tensor var(In x, const Dims& axes = {}, bool keepdims = false, double correction = 1);
Tensor stddev(In x, const Dims& axes = {}, bool keepdims = false, double correction = 1);
// (Σ |x|^p)^(1/p); p may be infinite (the largest |x|) or 0 (how many are not 0).
Tensor norm(In x, double p = 2, const Dims& axes = {}, bool keepdims = false);
Tensor logsumexp(In x, const Dims& axes = {}, bool keepdims = false);

// Where along the axis the first greatest or least element is; NaN beats every number.
Tensor argmax(In x, int64_t axis = -1, bool keepdims = false);
Tensor argmin(In x, int64_t axis = -1, bool keepdims = false);

// Element i is the total of the elements up to and with i. bool, i8, u8 -> i64.
Tensor cumsum(In x, int64_t axis = -1);
Tensor cumprod(In x, int64_t axis = -1);

}  // namespace tessera
