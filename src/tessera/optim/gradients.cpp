#include "tessera/optim/gradients.h"

namespace tessera {

std::vector<Tensor> gradients_of(std::string_view op, std::span<const Var> vars) {
  std::vector<Tensor> grads;
  for (const Var& var : vars) {
    if (Tensor grad = var.grad(); grad.defined()) grads.push_back(std::move(grad));
  }
  if (grads.empty()) fail(op, ": no parameter has a gradient: call backward(loss) first");
  return grads;
}

}  // namespace tessera
