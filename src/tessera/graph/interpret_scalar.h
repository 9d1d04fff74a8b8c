// Single elements in the reference interpreter (graph/interpret.h): floats as f64, integers and
// bool as int64_t.
#pragma once

#include "tessera/base/scalar_op.h"

namespace tessera {

// One application of a row of base/scalar_ops.def; a unary row ignores b, a logical row gives 0
// or 1.
double apply_scalar(ScalarOp op, double a, double b);
// On integers and bool; `dtype` is the result's, and the result wraps to it.
int64_t apply_scalar(ScalarOp op, DType dtype, int64_t a, int64_t b);

// The nearest value of a floating-point type.
double round_to(DType dtype, double value);
// The value modulo the width of an integer type; for bool, whether it is not 0.
int64_t wrap_to(DType dtype, int64_t value);
// Towards zero, then the nearest value in range; NaN gives 0. For bool, whether it is not 0.
int64_t truncate_to(DType dtype, double value);

}  // namespace tessera
