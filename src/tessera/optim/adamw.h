// AdamW (Loshchilov and Hutter 2019), by the formulae of PyTorch's AdamW, where t counts from 1:
//   p ← p - lr · weight_decay · p
//   m ← beta1 · m + (1 - beta1) · g;  v ← beta2 · v + (1 - beta2) · g²
//   p ← p - lr / (1 - beta1^t) · m / (√v / √(1 - beta2^t) + epsilon)
// t is common to all parameters, also to one that had no gradient in some step.
#pragma once

#include "tessera/optim/optimizer.h"

namespace tessera {

struct AdamWOptions {
  double lr = 1e-3;
  double beta1 = 0.9, beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 1e-2;
  bool skip_nonfinite = false;
};

class AdamW : public Optimizer {
 public:
  AdamW(const std::vector<Var>& parameters, const AdamWOptions& options = {});

 private:
  Tensor update(size_t index, const Tensor& value, const Tensor& grad,
                Updates& updates) const override;

  AdamWOptions options_;
};

}  // namespace tessera
