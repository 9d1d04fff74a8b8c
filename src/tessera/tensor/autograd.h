// Differentiation on Tensors.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "tessera/tensor/var.h"

namespace tessera {

// ∂loss/∂input for each input, as tensors that can be differentiated again; zeros where the loss
// does not depend on it. The loss has one element. Inputs may be any tensors, Var values included,
// that hold data: what is made of literals alone (zeros, full, arange) needs a detach() first.
std::vector<Tensor> grad(In loss, std::span<const Tensor> inputs);
std::vector<Tensor> grad(In loss, std::initializer_list<Tensor> inputs);
Tensor grad(In loss, In input);

// Adds the gradient to grad() of every trainable Var the loss depends on. The loss is computed with
// the next flush at the latest, so it can still be read after the optimiser's step.
void backward(In loss);

// The value, through which no gradient passes.
Tensor stop_gradient(In x);

using TensorFunction = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

// forward(inputs) with a gradient of one's own: `vjp(inputs, outputs, output_grads)` returns one
// gradient per input; an empty tensor stands for none.
using TensorVjp = std::function<std::vector<Tensor>(const std::vector<Tensor>& inputs,
                                                    const std::vector<Tensor>& outputs,
                                                    const std::vector<Tensor>& output_grads)>;
std::vector<Tensor> custom_vjp(const TensorFunction& forward, const TensorVjp& vjp,
                               const std::vector<Tensor>& inputs);

// fn(inputs), of which only inputs and outputs are kept for the gradient; what lies between is
// computed again when it is needed. Values are those of fn(inputs); the kernels may be cut
// otherwise, and sums then differ in their last bits.
std::vector<Tensor> checkpoint(const TensorFunction& fn, const std::vector<Tensor>& inputs);

}  // namespace tessera
