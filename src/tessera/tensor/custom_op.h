// Ops of one's own: a function for the CPU (and source for other devices) that takes part in the
// graph, the compiler, gradients and devices as Tessera's own ops do. examples/custom_op.cpp.
//
//   const CustomFunction swiglu = custom_op({
//       .name = "swiglu",
//       .types = [](std::span<const Type> in) { return std::vector<Type>{in[0]}; },
//       .cpu = [](std::span<const CustomOperand> in, std::span<const CustomOperand> out) { … },
//       .vjp = [](const auto& x, const auto& y, const auto& g) { … return gradients; },
//   });
//   Tensor y = swiglu(a, b);
#pragma once

#include <string>
#include <vector>

#include "tessera/base/custom_kernel.h"
#include "tessera/tensor/autograd.h"

namespace tessera {

struct CustomOp {
  std::string name;  // of the op and of the function in the sources; letters, digits and '_'

  // Types of the outputs for inputs of these types; fail() where they are wrong.
  std::function<std::vector<Type>(std::span<const Type> inputs)> types;

  // See base/custom_kernel.h. Operands are row-major, half types as stored.
  std::function<void(std::span<const CustomOperand> inputs, std::span<const CustomOperand> outputs)>
      cpu = {};
  std::string cuda = {}, opencl = {};

  // Gradients of the inputs, as custom_vjp's: of tensors, so that they can be differentiated again;
  // they may use other custom ops. Without it gradients go through the composite.
  TensorVjp vjp = {};

  // The same function in Tessera's ops: runs where a device has no form of the kernel, and gives
  // the gradient where there is no vjp. A custom op without it works where it has a kernel.
  TensorFunction composite = {};
};

// A defined op, to be called as often as wanted. Definitions are kept for the life of the process.
class CustomFunction {
 public:
  std::vector<Tensor> operator()(const std::vector<Tensor>& inputs,
                                 std::source_location line = std::source_location::current()) const;
  // For one input or two, and one output.
  Tensor operator()(In a) const;
  Tensor operator()(In a, In b) const;

 private:
  friend CustomFunction custom_op(CustomOp op);
  uint64_t number_ = 0;
};

CustomFunction custom_op(CustomOp op);

}  // namespace tessera
