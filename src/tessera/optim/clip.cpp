#include "tessera/optim/clip.h"

#include "tessera/graph/scope.h"
#include "tessera/optim/gradients.h"
#include "tessera/tensor/ops.h"

namespace tessera {

namespace {

constexpr double kEpsilon = 1e-6;  // as PyTorch: no division by a norm of 0

}  // namespace

Tensor grad_norm(std::span<const Var> vars) {
  const Scope scope("grad_norm");
  std::vector<Tensor> squares;
  for (const Tensor& grad : gradients_of("grad_norm", unique_vars(vars))) {
    const Tensor wide = cast(grad, compute_type(grad.dtype()));
    squares.push_back(cast(sum(wide * wide), DType::f32));
  }
  // After all of them: the compiler makes one kernel of neighbours in the program.
  Tensor total = squares[0];
  for (size_t i = 1; i < squares.size(); ++i) total = total + squares[i];
  const Tensor norm = sqrt(total);
  keep_readable(norm);
  return norm;
}

Tensor clip_grad_norm(std::span<const Var> vars, double max_norm) {
  if (!(max_norm > 0)) fail("clip_grad_norm: expected a norm above 0, got ", max_norm);
  const Scope scope("clip_grad_norm");
  const std::vector<Var> unique = unique_vars(vars);  // a Var given twice is clipped once
  gradients_of("clip_grad_norm", unique);             // throws when there is none
  const Tensor norm = grad_norm(unique);
  // norm - norm is NaN where the norm is not finite, and so are then all gradients.
  const Tensor scale = where(isfinite(norm), minimum(max_norm / (norm + kEpsilon), 1), norm - norm);
  for (const Var& var : unique) {
    if (const Tensor grad = var.grad(); grad.defined())
      var.set_grad(cast(grad * scale, grad.dtype()));
  }
  return norm;
}

void clip_grad_value(std::span<const Var> vars, double limit) {
  if (!(limit > 0)) fail("clip_grad_value: expected a limit above 0, got ", limit);
  const Scope scope("clip_grad_value");
  gradients_of("clip_grad_value", vars);  // throws when there is none
  for (const Var& var : vars) {
    if (const Tensor grad = var.grad(); grad.defined()) var.set_grad(clamp(grad, -limit, limit));
  }
}

}  // namespace tessera
