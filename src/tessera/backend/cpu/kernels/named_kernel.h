// The named kernels of kernel/kernel_call.h: each is prepared for fixed views, then run on
// addresses.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "tessera/runtime/backend.h"

namespace tessera::cpu {

class NamedKernel : public Executable {
 public:
  // `operands`: the addresses of the call's buffers, in its order.
  virtual void run(std::span<char* const> operands) const = 0;
};

using NamedKernelFactory = std::unique_ptr<NamedKernel> (*)(const KernelCall& call);

struct NamedKernelRow {
  std::string_view name;
  int operands;             // -1: any number
  NamedKernelFactory make;  // throws Error where the call's operands do not fit
  bool halves = true;       // it takes f16 and bf16, too, if it takes floats
};

std::span<const NamedKernelRow> named_kernels();

std::unique_ptr<NamedKernel> make_matmul(const KernelCall& call);
std::unique_ptr<NamedKernel> make_linear(const KernelCall& call);
std::unique_ptr<NamedKernel> make_softmax(const KernelCall& call);
std::unique_ptr<NamedKernel> make_layer_norm(const KernelCall& call);
std::unique_ptr<NamedKernel> make_layer_norm_backward(const KernelCall& call);
std::unique_ptr<NamedKernel> make_cumsum(const KernelCall& call);
std::unique_ptr<NamedKernel> make_cumprod(const KernelCall& call);
std::unique_ptr<NamedKernel> make_sort(const KernelCall& call);
std::unique_ptr<NamedKernel> make_topk(const KernelCall& call);
std::unique_ptr<NamedKernel> make_scatter_add(const KernelCall& call);
std::unique_ptr<NamedKernel> make_scatter(const KernelCall& call);
std::unique_ptr<NamedKernel> make_update_slice(const KernelCall& call);
std::unique_ptr<NamedKernel> make_attention(const KernelCall& call);
std::unique_ptr<NamedKernel> make_attention_backward(const KernelCall& call);
std::unique_ptr<NamedKernel> make_copy(const KernelCall& call);
std::unique_ptr<NamedKernel> make_custom(const KernelCall& call);

// Checks shared by the factories; `what` names the operand in the error.
void expect_shape(const KernelCall& call, int operand, std::string_view what, const Shape& shape);
void expect_dtype(const KernelCall& call, int operand, std::string_view what, DType dtype);
void expect_contiguous(const KernelCall& call);
void expect_float(const KernelCall& call, int operand, std::string_view what);
void expect_axis(const KernelCall& call, int rank);

}  // namespace tessera::cpu
