#include "tessera/optim/adamw.h"

#include "tessera/tensor/ops.h"

namespace tessera {

namespace {

void check_beta(const char* name, double beta) {
  if (!(beta >= 0 && beta < 1)) {
    fail("adamw: expected ", name, " from 0 to below 1, got ", beta);
  }
}

}  // namespace

AdamW::AdamW(const std::vector<Var>& vars, const AdamWOptions& options)
    : Optimizer("adamw", vars, options.lr, options.skip_nonfinite), options_(options) {
  check_beta("beta1", options.beta1);
  check_beta("beta2", options.beta2);
  if (!(options.epsilon > 0)) {
    fail("adamw: expected an epsilon above 0, got ", options.epsilon);
  }
  if (!(options.weight_decay >= 0)) {
    fail("adamw: expected a weight decay of at least 0, got ", options.weight_decay);
  }
  for (size_t i = 0; i < parameters().size(); ++i) {
    make_state(i, "m");
    make_state(i, "v");
  }
}

Tensor AdamW::update(size_t index, const Tensor& value, const Tensor& grad,
                     Updates& updates) const {
  const AdamWOptions& o = options_;
  const Var &m = state()[2 * index], &v = state()[2 * index + 1];
  const Tensor new_m = o.beta1 * m + (1 - o.beta1) * grad;
  const Tensor new_v = o.beta2 * v + (1 - o.beta2) * (grad * grad);
  updates.emplace_back(m, new_m);
  updates.emplace_back(v, new_v);

  // 0-d and f64 up to the casts.
  const auto correction = [t = next_step()](double beta) {
    return 1.0 - pow(full({}, beta, DType::f64), t);
  };
  const DType dtype = value.dtype();
  const Tensor step_size = cast(lr() / correction(o.beta1), dtype);
  const Tensor root = cast(sqrt(correction(o.beta2)), dtype);
  const Tensor kept = cast(1.0 - lr() * o.weight_decay, dtype);
  return value * kept - step_size * new_m / (sqrt(new_v) / root + o.epsilon);
}

}  // namespace tessera
