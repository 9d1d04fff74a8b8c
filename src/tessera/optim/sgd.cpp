#include "tessera/optim/sgd.h"

#include "tessera/tensor/ops.h"

namespace tessera {

namespace {

using Slots = std::vector<std::string>;

}  // namespace

SGD::SGD(const Parameters& parameters, const SGDOptions& options)
    : Optimizer("sgd", parameters, step_options(options),
                options.momentum == 0 ? Slots{} : Slots{"momentum"}),
      options_(options) {
  if (!(options.momentum >= 0 && options.momentum < 1)) {
    fail("sgd: expected a momentum from 0 to below 1, got ", options.momentum);
  }
  if (!(options.dampening >= 0 && options.dampening <= 1)) {
    fail("sgd: expected a dampening from 0 to 1, got ", options.dampening);
  }
  if (options.nesterov && options.momentum == 0) {
    fail("sgd: nesterov expects a momentum above 0, got 0");
  }
  if (options.nesterov && options.dampening != 0) {
    fail("sgd: nesterov expects a dampening of 0, got ", options.dampening);
  }
}

// What of the gradient goes into the momentum: 0-d.
Tensor SGD::gradient_share(DType dtype) const {
  return where(steps() == 0, full({}, 1, dtype), full({}, 1 - options_.dampening, dtype));
}

Tensor SGD::update(size_t index, const Tensor& value, const Tensor& grad, Updates& updates) const {
  const SGDOptions& o = options_;
  const double decay = weight_decay(index);
  Tensor g = decay != 0 ? grad + decay * value : grad;
  if (o.momentum != 0) {
    const Var& m = state(index, 0);
    const Tensor share = o.dampening != 0 ? gradient_share(g.dtype()) * g : g;
    const Tensor moved = o.momentum * m + share;
    updates.emplace_back(m, moved);
    g = o.nesterov ? g + o.momentum * moved : moved;
  }
  return value - cast(lr_of(index), value.dtype()) * g;
}

}  // namespace tessera
