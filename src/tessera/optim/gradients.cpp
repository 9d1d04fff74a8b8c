#include "tessera/optim/gradients.h"

#include <algorithm>

#include "tessera/tensor/ops.h"

namespace tessera {

std::vector<Var> unique_vars(std::span<const Var> vars) {
  std::vector<Var> unique;
  for (const Var& var : vars) {
    const auto is_same = [&](const Var& other) { return other.same_slot(var); };
    if (std::ranges::none_of(unique, is_same)) unique.push_back(var);
  }
  return unique;
}

std::vector<Tensor> gradients_of(std::string_view op, std::span<const Var> vars) {
  std::vector<Tensor> grads;
  for (const Var& var : vars) {
    if (Tensor grad = var.grad(); grad.defined()) grads.push_back(std::move(grad));
  }
  if (grads.empty()) fail(op, ": no parameter has a gradient: call backward(loss) first");
  return grads;
}

Tensor all_finite(std::span<const Tensor> tensors) {
  Tensor bad;  // 0-d i64: elements that are not finite
  for (const Tensor& tensor : tensors) {
    const Tensor count = sum(logical_not(isfinite(tensor)));
    bad = bad.defined() ? bad + count : count;
  }
  return bad == 0;
}

}  // namespace tessera
