#include "tessera/optim/sgd.h"

#include "tessera/tensor/ops.h"

namespace tessera {

SGD::SGD(const std::vector<Var>& vars, const SGDOptions& options)
    : Optimizer("sgd", vars, options.lr, options.skip_nonfinite), options_(options) {
  if (!(options.momentum >= 0 && options.momentum < 1)) {
    fail("sgd: expected a momentum from 0 to below 1, got ", options.momentum);
  }
  if (!(options.weight_decay >= 0)) {
    fail("sgd: expected a weight decay of at least 0, got ", options.weight_decay);
  }
  if (options.nesterov && options.momentum == 0) {
    fail("sgd: nesterov expects a momentum above 0, got 0");
  }
  if (options.momentum == 0) return;
  for (size_t i = 0; i < parameters().size(); ++i) make_state(i, "momentum");
}

Tensor SGD::update(size_t index, const Tensor& value, const Tensor& grad, Updates& updates) const {
  const SGDOptions& o = options_;
  Tensor g = o.weight_decay != 0 ? grad + o.weight_decay * value : grad;
  if (o.momentum != 0) {
    const Var& m = state()[index];
    const Tensor moved = o.momentum * m + g;
    updates.emplace_back(m, moved);
    g = o.nesterov ? g + o.momentum * moved : moved;
  }
  return value - lr_as(value.dtype()) * g;
}

}  // namespace tessera
