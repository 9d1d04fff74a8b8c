// GradientAccumulator: adds up the gradients of several micro-batches, each in its own call of a
// compiled function, for one step of the optimiser. (Within one function, calling backward()
// several times adds up already.)
//
//   const auto micro = compile([&](const Tensor& x) {
//     const Tensor loss = model_loss(x);
//     backward(loss);
//     accumulator.add();
//     return loss;
//   });
//   const auto step = compile([&] { accumulator.take(); optimizer.step(); });
//
// Their number may differ from step to step and recompiles nothing.
#pragma once

#include <vector>

#include "tessera/tensor/named_var.h"

namespace tessera {

class GradientAccumulator {
 public:
  // Sums are kept in the compute type: f32 for half types.
  explicit GradientAccumulator(const std::vector<Var>& parameters);

  // Adds the gradients that backward() left to the sums, and clears them.
  void add();

  // Sets every gradient to the mean of those that add() has added, and begins anew. Parameters that
  // never had a gradient get none. At least one add() must have run, or been traced, before.
  void take();

  const std::vector<Var>& sums() const { return sums_; }  // by parameter, each slot once
  const Var& count() const { return count_; }             // 0-d i64: calls of add() since take()

 private:
  std::vector<Var> parameters_, sums_;
  std::vector<bool> is_used_;  // by parameter
  Var count_;
};

}  // namespace tessera
