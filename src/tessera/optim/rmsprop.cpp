#include "tessera/optim/rmsprop.h"

#include "tessera/tensor/ops.h"

namespace tessera {

namespace {

std::vector<std::string> slots_of(const RMSpropOptions& options) {
  std::vector<std::string> slots;
  slots.reserve(3);  // without, gcc 13 warns of the move to a larger vector
  slots.push_back("v");
  if (options.centered) slots.push_back("mean");
  if (options.momentum != 0) slots.push_back("momentum");
  return slots;
}

}  // namespace

RMSprop::RMSprop(const Parameters& parameters, const RMSpropOptions& options)
    : Optimizer("rmsprop", parameters, step_options(options), slots_of(options)),
      options_(options) {
  if (!(options.alpha >= 0 && options.alpha < 1)) {
    fail("rmsprop: expected an alpha from 0 to below 1, got ", options.alpha);
  }
  if (!(options.epsilon > 0)) {
    fail("rmsprop: expected an epsilon above 0, got ", options.epsilon);
  }
  if (!(options.momentum >= 0 && options.momentum < 1)) {
    fail("rmsprop: expected a momentum from 0 to below 1, got ", options.momentum);
  }
}

Tensor RMSprop::update(size_t index, const Tensor& value, const Tensor& grad,
                       Updates& updates) const {
  const RMSpropOptions& o = options_;
  const double decay = weight_decay(index);
  const Tensor g = decay != 0 ? grad + decay * value : grad;
  // The next slot is a running average; returns its new value.
  size_t slot = 0;
  const auto averaged = [&](const Tensor& next) {
    const Var& average = state(index, slot++);
    updates.emplace_back(average, o.alpha * average + (1 - o.alpha) * next);
    return updates.back().second;
  };
  Tensor spread = averaged(g * g);
  if (o.centered) {
    const Tensor mean = averaged(g);
    spread = maximum(spread - mean * mean, 0);  // rounding may take it below
  }
  Tensor change = g / (sqrt(spread) + o.epsilon);
  if (o.momentum != 0) {
    const Var& buffer = state(index, slot);
    change = o.momentum * buffer + change;
    updates.emplace_back(buffer, change);
  }
  return value - cast(lr_of(index), value.dtype()) * change;
}

}  // namespace tessera
