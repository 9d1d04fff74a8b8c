#include "tessera/backend/cpu/kernels/named_kernel.h"

namespace tessera::cpu {

namespace {

constexpr NamedKernelRow kRows[] = {
    {"matmul", 3, make_matmul},
    {"linear", 5, make_linear, false},
    {"linear_slope", 5, make_linear, false},
    {"softmax", 2, make_softmax},
    {"layer_norm", 6, make_layer_norm},
    {"layer_norm_backward", 8, make_layer_norm_backward},
    {"cumsum", 2, make_cumsum},
    {"cumprod", 2, make_cumprod},
    {"sort", 3, make_sort},
    {"topk", 3, make_topk},
    {"scatter_add", 4, make_scatter_add},
    {"scatter", 4, make_scatter},
    {"update_slice", 4, make_update_slice},
    {"attention", -1, make_attention},
    {"attention_backward", -1, make_attention_backward},
    {"copy", 2, make_copy},
    {"custom", -1, make_custom},
};

}  // namespace

std::span<const NamedKernelRow> named_kernels() { return kRows; }

void expect_shape(const KernelCall& call, int operand, std::string_view what, const Shape& shape) {
  const Shape& got = call.operands[size_t(operand)].view.shape;
  if (got == shape) return;
  fail(call.kernel, ": expected ", what, " of shape ", shape, ", got ", got);
}

void expect_dtype(const KernelCall& call, int operand, std::string_view what, DType dtype) {
  const DType got = call.operands[size_t(operand)].dtype;
  if (got != dtype) fail(call.kernel, ": expected ", what, " of type ", dtype, ", got ", got);
}

void expect_contiguous(const KernelCall& call) {
  for (const OperandView& operand : call.operands) {
    View view = operand.view;
    view.offset = 0;
    if (is_contiguous(view)) continue;
    fail(call.kernel, ": expected contiguous operands, got strides ", view.strides, " for shape ",
         view.shape);
  }
}

void expect_float(const KernelCall& call, int operand, std::string_view what) {
  const DType got = call.operands[size_t(operand)].dtype;
  if (!is_float(got)) fail(call.kernel, ": expected ", what, " of a floating type, got ", got);
}

void expect_axis(const KernelCall& call, int rank) {
  const int64_t axis = call.attrs.axis;
  if (axis >= 0 && axis < rank) return;
  fail(call.kernel, ": expected an axis in [0, ", rank, "), got ", axis);
}

}  // namespace tessera::cpu
