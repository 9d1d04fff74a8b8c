// Stochastic gradient descent, by the formulae of PyTorch's SGD (without dampening):
//   g ← grad + weight_decay · p;  m ← momentum · m + g;  p ← p - lr · m
// with g + momentum · m instead of m for Nesterov's form.
#pragma once

#include "tessera/optim/optimizer.h"

namespace tessera {

struct SGDOptions {
  double lr = 1e-2;
  double momentum = 0;
  double weight_decay = 0;
  bool nesterov = false;  // REQUIRES momentum
  bool skip_nonfinite = false;
};

class SGD : public Optimizer {
 public:
  SGD(const std::vector<Var>& parameters, const SGDOptions& options);

 private:
  Tensor update(size_t index, const Tensor& value, const Tensor& grad,
                Updates& updates) const override;

  SGDOptions options_;
};

}  // namespace tessera
