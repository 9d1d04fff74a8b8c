// Adam (Kingma and Ba 2015) and AdamW (Loshchilov and Hutter 2019), by PyTorch's formulae, where t
// counts from 1:
//   Adam:   g ← grad + weight_decay · p
//   AdamW:  p ← p - lr · weight_decay · p
//   m ← beta1 · m + (1 - beta1) · g;  v ← beta2 · v + (1 - beta2) · g²
//   p ← p - lr / (1 - beta1^t) · m / (√v / √(1 - beta2^t) + epsilon)
// t is common to all parameters, also to one that had no gradient in some step.
#pragma once

#include "tessera/optim/optimizer.h"

namespace tessera {

struct AdamOptions {
  double lr = 1e-3;
  double beta1 = 0.9, beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;
  bool skip_nonfinite = false;
  bool f32_masters = true;
  std::vector<ParameterGroup> groups = {};
};

class Adam : public Optimizer {
 public:
  Adam(const Parameters& parameters, const AdamOptions& options = {});

 protected:
  enum class Decay { in_gradient, of_value };

  Adam(std::string name, Decay decay, const Parameters& parameters, const AdamOptions& options);

 private:
  Tensor update(size_t index, const Tensor& value, const Tensor& grad,
                Updates& updates) const override;

  Decay decay_;
  AdamOptions options_;
};

struct AdamWOptions {
  double lr = 1e-3;
  double beta1 = 0.9, beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 1e-2;
  bool skip_nonfinite = false;
  bool f32_masters = true;
  std::vector<ParameterGroup> groups = {};
};

class AdamW : public Adam {
 public:
  AdamW(const Parameters& parameters, const AdamWOptions& options = {});
};

}  // namespace tessera
