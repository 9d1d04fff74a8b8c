#include "tessera/optim/loss_scaler.h"

#include <cmath>

#include "tessera/graph/scope.h"
#include "tessera/optim/gradients.h"
#include "tessera/tensor/autograd.h"
#include "tessera/tensor/ops.h"

namespace tessera {

LossScaler::LossScaler(const LossScalerOptions& options, Device device)
    : options_(options),
      scale_(scalar(float(options.initial)).to(device), "loss_scaler.scale", false),
      good_(scalar(int64_t{0}).to(device), "loss_scaler.good", false) {
  if (!(options.initial > 0 && std::isfinite(options.initial))) {
    fail("LossScaler: expected a finite scale above 0, got ", options.initial);
  }
  if (!(options.growth >= 1 && options.backoff > 0 && options.backoff < 1)) {
    fail("LossScaler: expected a growth of at least 1 and a backoff between 0 and 1, got ",
         options.growth, " and ", options.backoff);
  }
  if (options.growth_interval < 1) {
    fail("LossScaler: expected a growth interval of at least 1 step, got ",
         options.growth_interval);
  }
}

void LossScaler::backward(const Tensor& loss) const {
  const Scope scope("loss_scaler");
  keep_readable(loss);
  tessera::backward(cast(loss, compute_type(loss.dtype())) * scale_);
}

void LossScaler::unscale(const Optimizer& optimizer) const {
  if (!optimizer.skips_nonfinite()) {
    fail("LossScaler: expected an optimiser with skip_nonfinite, got one that takes every step");
  }
  const Scope scope("loss_scaler");
  const Tensor inverse = 1 / scale_.value();
  for (const Var& var : optimizer.parameters()) {
    const Tensor grad = var.grad();
    if (!grad.defined()) continue;
    const Tensor unscaled = cast(grad, compute_type(grad.dtype())) * inverse;
    var.set_grad(unscaled);
    keep_readable(unscaled);  // a read before the step would replace the scale it comes from
  }
  const Tensor finite = all_finite(gradients_of("LossScaler", optimizer.parameters()));
  const Tensor good = good_ + 1;
  const Tensor grown = scale_ * options_.growth;
  const Tensor grows = logical_and(good == options_.growth_interval, isfinite(grown));
  const Tensor kept = where(grows, grown, scale_);
  scale_.assign(where(finite, kept, scale_ * options_.backoff));
  good_.assign(where(logical_and(finite, good < options_.growth_interval), good, 0));
}

}  // namespace tessera
