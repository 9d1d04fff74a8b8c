#include "tessera/optim/adam.h"

#include "tessera/tensor/ops.h"

namespace tessera {

namespace {

void check_adam(const std::string& name, const AdamOptions& options) {
  const auto check_beta = [&](const char* which, double beta) {
    if (!(beta >= 0 && beta < 1)) {
      fail(name, ": expected ", which, " from 0 to below 1, got ", beta);
    }
  };
  check_beta("beta1", options.beta1);
  check_beta("beta2", options.beta2);
  if (!(options.epsilon > 0)) fail(name, ": expected an epsilon above 0, got ", options.epsilon);
}

AdamOptions adam_options(const AdamWOptions& o) {
  return {.lr = o.lr,
          .beta1 = o.beta1,
          .beta2 = o.beta2,
          .epsilon = o.epsilon,
          .weight_decay = o.weight_decay,
          .skip_nonfinite = o.skip_nonfinite,
          .f32_masters = o.f32_masters,
          .groups = o.groups};
}

}  // namespace

Adam::Adam(std::string name, Decay decay, const Parameters& parameters, const AdamOptions& options)
    : Optimizer(name, parameters, step_options(options), {"m", "v"}),
      decay_(decay),
      options_(options) {
  check_adam(name, options);
}

Adam::Adam(const Parameters& parameters, const AdamOptions& options)
    : Adam("adam", Decay::in_gradient, parameters, options) {}

AdamW::AdamW(const Parameters& parameters, const AdamWOptions& options)
    : Adam("adamw", Decay::of_value, parameters, adam_options(options)) {}

Tensor Adam::update(size_t index, const Tensor& value, const Tensor& grad, Updates& updates) const {
  const AdamOptions& o = options_;
  const double decay = weight_decay(index);
  const Tensor g = decay_ == Decay::in_gradient && decay != 0 ? grad + decay * value : grad;
  const Var &m = state(index, 0), &v = state(index, 1);
  const Tensor new_m = o.beta1 * m + (1 - o.beta1) * g;
  const Tensor new_v = o.beta2 * v + (1 - o.beta2) * (g * g);
  updates.emplace_back(m, new_m);
  updates.emplace_back(v, new_v);

  // 0-d and f64 up to the casts.
  const auto correction = [t = next_step()](double beta) {
    return 1.0 - pow(full({}, beta, DType::f64), t);
  };
  const DType dtype = value.dtype();
  const Tensor lr = lr_of(index);
  const Tensor step_size = cast(lr / correction(o.beta1), dtype);
  const Tensor root = cast(sqrt(correction(o.beta2)), dtype);
  const Tensor change = step_size * new_m / (sqrt(new_v) / root + o.epsilon);
  if (decay_ == Decay::in_gradient) return value - change;
  return value * cast(1.0 - lr * decay, dtype) - change;
}

}  // namespace tessera
