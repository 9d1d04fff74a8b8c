// Exponential moving averages of parameters, which often do better than the parameters themselves:
//   average ← decay · average + (1 - decay) · parameter
// They begin with the values at construction.
#pragma once

#include <vector>

#include "tessera/optim/parameters.h"

namespace tessera {

class Ema {
 public:
  explicit Ema(const Parameters& parameters, double decay = 0.999);

  // After every step of the optimiser; also inside compile(fn).
  void update() const;

  // For an evaluation: gives the parameters the values of their averages, and back what they had
  // before. Outside compile(fn); calls alternate.
  void apply();
  void restore();

  // By parameter, each slot once, in the compute type: f32 for half types.
  const std::vector<Var>& averages() const { return averages_; }
  std::vector<NamedVar> named_state() const;  // "fc1.weight.average"

 private:
  double decay_;
  std::vector<Var> parameters_, averages_;
  std::vector<Tensor> saved_;  // by parameter, between apply and restore
};

}  // namespace tessera
