#include "tessera/optim/accumulator.h"

#include <algorithm>

#include "tessera/graph/scope.h"
#include "tessera/optim/gradients.h"
#include "tessera/tensor/device.h"
#include "tessera/tensor/ops.h"

namespace tessera {

GradientAccumulator::GradientAccumulator(const std::vector<Var>& parameters)
    : parameters_(unique_vars(parameters)), is_used_(parameters_.size(), false) {
  Device device = default_device();
  for (const Var& var : parameters_) {
    device = var.value().device();
    const Tensor zero = zeros(var.shape(), compute_type(var.dtype())).to(device);
    sums_.emplace_back(zero, var.name() + ".sum", false);
  }
  count_ = Var(scalar(int64_t{0}).to(device), "accumulator.count", false);
}

void GradientAccumulator::add() {
  const Scope scope("accumulator");
  gradients_of("GradientAccumulator", parameters_);  // throws when there is none
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const Tensor grad = parameters_[i].grad();
    if (!grad.defined()) continue;
    sums_[i].assign(sums_[i] + cast(grad, sums_[i].dtype()));
    parameters_[i].set_grad({});
    is_used_[i] = true;
  }
  count_.assign(count_ + 1);
  flush();
}

void GradientAccumulator::take() {
  if (std::ranges::none_of(is_used_, std::identity())) {
    fail("GradientAccumulator: nothing has been added: call add() before take()");
  }
  const Scope scope("accumulator");
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (!is_used_[i]) continue;
    const Var &var = parameters_[i], &sum = sums_[i];
    const Tensor mean = cast(sum / cast(count_, sum.dtype()), var.dtype());
    var.set_grad(mean);
    keep_readable(mean);  // a read before the step would replace the sum it comes from
    sum.assign(zeros(sum.shape(), sum.dtype()));
  }
  count_.assign(zeros({}, DType::i64));
}

}  // namespace tessera
