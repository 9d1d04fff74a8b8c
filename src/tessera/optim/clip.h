#pragma once

#include <span>

#include "tessera/tensor/var.h"

namespace tessera {

// The norm of the gradients of `vars`, taken over all of them together: 0-d f32, which stays
// readable after the optimiser's step.
Tensor grad_norm(std::span<const Var> vars);

// Scales the gradients of `vars` so that their norm, taken over all of them together, is at most
// `max_norm`. Returns the norm before that, 0-d f32, which stays readable after the optimiser's
// step. A norm that is not finite makes every gradient NaN: see Optimizer's skip_nonfinite.
Tensor clip_grad_norm(std::span<const Var> vars, double max_norm);

// Cuts every element of the gradients of `vars` to [-limit, limit]; NaN stays NaN.
void clip_grad_value(std::span<const Var> vars, double limit);

}  // namespace tessera
