// Stochastic gradient descent, by the formulae of PyTorch's SGD:
//   g ← grad + weight_decay · p;  m ← momentum · m + (1 - dampening) · g;  p ← p - lr · m
// with g + momentum · m instead of m for Nesterov's form. The first step takes g for m, undampened.
#pragma once

#include "tessera/optim/optimizer.h"

namespace tessera {

struct SGDOptions {
  double lr = 1e-2;
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;
  bool nesterov = false;  // REQUIRES momentum and no dampening
  bool skip_nonfinite = false;
  bool f32_masters = true;
  std::vector<ParameterGroup> groups = {};
};

class SGD : public Optimizer {
 public:
  SGD(const Parameters& parameters, const SGDOptions& options);

 private:
  Tensor update(size_t index, const Tensor& value, const Tensor& grad,
                Updates& updates) const override;
  Tensor gradient_share(DType dtype) const;

  SGDOptions options_;
};

}  // namespace tessera
