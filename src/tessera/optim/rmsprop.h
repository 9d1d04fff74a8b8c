// RMSprop (Hinton 2012), by the formulae of PyTorch's RMSprop:
//   g ← grad + weight_decay · p;  v ← alpha · v + (1 - alpha) · g²
//   d ← g / (√v + epsilon);  p ← p - lr · d
// Centered: a ← alpha · a + (1 - alpha) · g, and v - a² stands for v in d. With momentum:
//   b ← momentum · b + d;  p ← p - lr · b
#pragma once

#include "tessera/optim/optimizer.h"

namespace tessera {

struct RMSpropOptions {
  double lr = 1e-2;
  double alpha = 0.99;
  double epsilon = 1e-8;
  double momentum = 0;
  double weight_decay = 0;
  bool centered = false;
  bool skip_nonfinite = false;
  bool f32_masters = true;
  std::vector<ParameterGroup> groups = {};
};

class RMSprop : public Optimizer {
 public:
  RMSprop(const Parameters& parameters, const RMSpropOptions& options = {});

 private:
  Tensor update(size_t index, const Tensor& value, const Tensor& grad,
                Updates& updates) const override;

  RMSpropOptions options_;
};

}  // namespace tessera
