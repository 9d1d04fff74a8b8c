// Kernels that several tests share.
#pragma once

#include <vector>

#include "tessera/kernel/kernel_ir.h"

namespace tessera {

// One kernel per feature of the renderer; their texts are kept in golden/.
std::vector<KernelIR> golden_kernels();

// y = exp(x - max) / sum(exp(x - max)) over the last axis of (rows, cols), and m = max.
KernelIR softmax_kernel(DType dtype, int64_t rows, int64_t cols);
KernelIR vector_softmax_kernel(DType dtype);  // one row, of run-time length, walked three times

// Layer normalisation of (rows, cols), with weights and offsets of (cols,).
KernelIR layer_norm_kernel(DType dtype, int64_t rows, int64_t cols);

// y = sqrt(Σ x²) over all of (n,).
KernelIR norm_kernel(DType dtype);

// Every scalar op that takes `dtype`, but uniform: operands a, b, then one output per op, all (n,).
struct AllOps {
  KernelIR ir;
  std::vector<ScalarOp> ops;
};
AllOps all_ops_kernel(DType dtype);

// x of `from`, then one output per dtype, in the enumeration's order; all (n,).
KernelIR all_casts_kernel(DType from);

// x of `dtype` (rows, cols), then the results (rows,) of the reductions in ReduceOp's order.
KernelIR all_reductions_kernel(DType dtype, int64_t cols);

}  // namespace tessera
