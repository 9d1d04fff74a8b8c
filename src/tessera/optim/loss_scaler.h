// LossScaler: keeps gradients that pass through f16 inside its range. The loss is multiplied by a
// scale before it is differentiated and the gradients divided by it before they are used. A step
// with an infinity or a NaN is skipped and shrinks the scale; many good ones in a row let it grow.
//
//   LossScaler scaler;
//   AdamW optimizer(parameters, {.skip_nonfinite = true});
//   …
//   scaler.backward(loss);
//   scaler.unscale(optimizer);
//   clip_grad_norm(optimizer.parameters(), 1);
//   optimizer.step();
//
// The scale is a Var and the device decides: nothing recompiles, and the host does not wait. Scales
// are those of PyTorch's GradScaler.
#pragma once

#include "tessera/optim/optimizer.h"
#include "tessera/tensor/device.h"

namespace tessera {

struct LossScalerOptions {
  double initial = 65536;
  double growth = 2, backoff = 0.5;
  int64_t growth_interval = 2000;  // good steps in a row before the scale grows
};

class LossScaler {
 public:
  // The device is that of the loss.
  explicit LossScaler(const LossScalerOptions& options = {}, Device device = default_device());

  // backward() of the scaled loss.
  void backward(const Tensor& loss) const;

  // Divides the gradients of the optimiser's parameters by the scale, and moves the scale for the
  // next step. Gradients of half types become f32, since most of them would be 0 in f16. The
  // optimiser must be one that skips steps that are not finite.
  void unscale(const Optimizer& optimizer) const;

  const Var& scale() const { return scale_; }  // 0-d f32
  const Var& good() const { return good_; }    // 0-d i64: good steps since the scale changed
  std::vector<NamedVar> named_state() const { return {{"scale", scale_}, {"good", good_}}; }

 private:
  LossScalerOptions options_;
  Var scale_, good_;
};

}  // namespace tessera
