// KernelCall: one unit of work for a backend — a generated kernel (ir) or a named one, with the
// views of its operands. Target: what a device can do.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/base/custom_kernel.h"
#include "tessera/kernel/kernel_ir.h"
#include "tessera/kernel/view.h"

namespace tessera {

// What a named kernel needs beside its operands; each kernel documents which fields it reads.
struct KernelAttrs {
  int64_t axis = 0;
  double scalar = 0;
  double rate = 0;

  bool operator==(const KernelAttrs&) const = default;
};

struct OperandView {
  DType dtype;
  View view;
};

struct KernelCall {
  std::string kernel;                  // name of a named kernel; empty for a generated one
  std::shared_ptr<const KernelIR> ir;  // generated kernels only
  std::vector<OperandView>
      operands;     // inputs, then outputs; for an ir, in the order of ir->operands
  int outputs = 1;  // how many of the last operands are written
  KernelAttrs attrs;
  std::shared_ptr<const CustomKernel> custom = nullptr;  // the kernel named "custom" only
  // A joined kernel: the ir over several sets of operands, its parts, in one launch and in no
  // order; extents[0] of each. `operands` are the inputs of all, part by part, then their outputs.
  // Empty: there is one set.
  std::vector<int64_t> parts = {};
};

// Whose operand number `i` of a call is: which part's, and which of the ir's operands.
struct PartOperand {
  size_t part, operand;
};
PartOperand part_operand(const KernelCall& call, size_t i);

// Words of 8 bytes that a part takes in the table of a joined kernel.
int64_t words_of_part(const KernelIR& ir);

// The named kernels of this design and their operands (inputs -> outputs):
//   matmul               a (…, M, K), b (…, K, N) -> c (…, M, N); any strides; batch extents equal
//   softmax              x (R…, C) -> y; over the last axis; contiguous
//   layer_norm           x (R…, C), gamma (C), beta (C) -> y, mean (R…, 1), rstd (R…, 1);
//                        attrs.scalar = epsilon; statistics in the compute type; contiguous
//   layer_norm_backward  g (R…, C), x, gamma (C), mean (R…, 1), rstd (R…, 1)
//                        -> dx (R…, C), dgamma (C), dbeta (C); contiguous
//   linear               a (M, K), b (K, N), bias (N) -> y (M, N), sum (M, N); sum = a b + bias,
//                        y the same, or its gelu_tanh (attrs.axis = 1) or relu (2); any strides of
//                        a, b and bias; y and sum packed, or y without sum in rows that lie apart
//   linear_slope         a (M, K), b (K, N), x (M, N) -> y (M, N), sums (N); y = a b gelu_tanh'(x),
//                        sums are those of its columns; any strides of inputs, y as in linear
//   matmul_add           a (M, K), b (K, N), c (M, N) -> a b + c (M, N), may be where c is;
//                        any strides
//   matmul_sums          a (M, K), b (K, N) -> a b (M, N), the sums of b's columns (N); any strides
//   cross_entropy        x (R…, C), targets (R…, 1) of integers, g (R…, 1) -> loss (R…, 1),
//                        dx (R…, C) = g · its gradient; loss and g in the compute type; rows of x
//                        and of dx equally far apart (row_step), all else contiguous; dx may be
//                        where x is
//   cumsum, cumprod      x -> y of the same shape and dtype; totals along attrs.axis; any strides;
//                        half types are accumulated wider, integers wrap
//   sort                 x (R…, C) -> values (R…, C), indices (R…, C) i64; over the last axis,
//                        falling where attrs.axis is 1; stable, NaN counts as greatest; any strides
//   topk                 x (R…, C) -> values (R…, K), indices (R…, K) i64; the K greatest of each
//   row
//                        where attrs.axis is 1, else the least, in the order of sort; any strides
//   scatter_add          x, index (any integer), src -> y; y = x, then y[…, index[p], …] += src[p]
//   at
//                        every position p of src along attrs.axis; y may be x's own buffer
//   scatter              the same with = in place of +=; the last position wins
//   update_slice         x, u, start (0-d integer) -> y; y = x with u placed at `start` along
//                        attrs.axis; y may be x's own buffer
//   attention            q (B, H, T, D), k (B, G, S, D), v (B, G, S, E) and what attrs.axis names
//                        (base/attention_options.h) -> y (B, H, T, E), lse (B, H, T) in the compute
//                        type: graph/attention.h; attrs.scalar = scale, attrs.rate = dropout; any
//                        strides, but lse and, unless Target::orders_outputs, y are packed; no
//                        extent is 0
//   attention_backward   g (B, H, T, E), q, k, v, y, lse and what attrs.axis names -> dq, dk, dv,
//                        packed unless Target::orders_outputs
//   custom               what `custom` says; packed; every output has a buffer
//   copy                 x -> y of the same shape and dtype; any strides
// Of those with several outputs, any may be left out: it has no buffer (a null handle).

struct Target {
  std::string device;       // "cpu"
  std::string description;  // the device in words: model, cores, instruction set
  int64_t memory_bytes = 0;
  int alignment = 64;                      // of buffers and of offsets inside an arena, bytes
  std::vector<std::string> named_kernels;  // those it has
  std::vector<std::string> wide_kernels;   // those of them that take no f16 and bf16
  int64_t table_words = 0;  // of a joined kernel's table; 0: it has no joined kernels
  int64_t row_bytes = 0;    // rows of a product's operands best begin at multiples of it; 0: any
  bool turns_products = false;    // a product that is only read transposed is better turned
  bool orders_outputs = false;    // attention and attention_backward write with any strides
  bool compiles_at_once = false;  // several threads gain by compiling its kernels side by side
  // Rows of f32 and of half types that are long: of more than so many columns and at most so many
  // bytes (0: there are none). It has softmax and layer_norm of them, if of no others.
  int64_t long_row_columns = 0, long_row_bytes = 0;

  bool has(std::string_view kernel) const;
  bool has(std::string_view kernel, DType dtype) const;  // for operands of that type
  bool is_long_row(DType dtype, int64_t columns) const;
};

}  // namespace tessera
