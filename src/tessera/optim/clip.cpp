#include "tessera/optim/clip.h"

#include <algorithm>

#include "tessera/graph/scope.h"
#include "tessera/optim/gradients.h"
#include "tessera/tensor/ops.h"

namespace tessera {

namespace {

constexpr double kEpsilon = 1e-6;  // as PyTorch: no division by a norm of 0

}  // namespace

Tensor clip_grad_norm(std::span<const Var> vars, double max_norm) {
  if (!(max_norm > 0)) fail("clip_grad_norm: expected a norm above 0, got ", max_norm);
  const Scope scope("clip_grad_norm");
  std::vector<Var> unique;  // a Var given twice is clipped once
  for (const Var& var : vars) {
    const auto is_same = [&](const Var& other) { return other.same_slot(var); };
    if (std::ranges::none_of(unique, is_same)) unique.push_back(var);
  }
  Tensor squares;
  for (const Tensor& grad : gradients_of("clip_grad_norm", unique)) {
    const Tensor wide = cast(grad, compute_type(grad.dtype()));
    const Tensor square = cast(sum(wide * wide), DType::f32);
    squares = squares.defined() ? squares + square : square;
  }
  const Tensor norm = sqrt(squares);
  // norm - norm is NaN where the norm is not finite, and so are then all gradients.
  const Tensor scale = where(isfinite(norm), minimum(max_norm / (norm + kEpsilon), 1), norm - norm);
  for (const Var& var : unique) {
    if (const Tensor grad = var.grad(); grad.defined())
      var.set_grad(cast(grad * scale, grad.dtype()));
  }
  keep_readable(norm);
  return norm;
}

}  // namespace tessera
