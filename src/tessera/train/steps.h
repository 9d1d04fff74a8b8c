// What a Trainer compiles: a step over one batch, or a part of a step for each of several batches
// and an end for all of them.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "tessera/optim/optim.h"
#include "tessera/tensor/compiled.h"
#include "tessera/train/memory_plan.h"

namespace tessera {

struct StepParts {
  std::function<Tensor(std::span<const Tensor> batch)> loss;
  Optimizer& optimizer;
  Parameters parameters;  // of the averages
  int64_t accumulate = 1;
  double clip = 0, clip_value = 0;
  bool loss_scaling = false;
  double ema = 0;
};

class CompiledSteps {
 public:
  explicit CompiledSteps(StepParts parts);

  // Takes a step: {loss, norm of the gradients before clipping}, 0-d f32 each.
  std::vector<Tensor> operator()(std::span<const std::vector<Tensor>> batches) const;

  // The loss of a batch in evaluation mode.
  Tensor evaluate(std::span<const Tensor> batch) const;

  // Temporaries, batches and sums of a step over such batches; the rest stays 0.
  MemoryPlan plan(std::span<const Tensor> batch) const;

  Ema* averages() const { return ema_.get(); }
  std::vector<NamedVar> state() const;  // of loss scale and averages

 private:
  Tensor backward(std::span<const Tensor> batch) const;
  Tensor clip(const std::vector<Var>& vars) const;  // the norm before that
  Tensor update() const;                            // the norm

  StepParts parts_;
  std::unique_ptr<LossScaler> scaler_;
  std::unique_ptr<Ema> ema_;
  std::unique_ptr<GradientAccumulator> sums_;  // null: a step is one batch
  Var loss_sum_;                               // 0-d f32, of the batches so far
  std::optional<Compiled> step_, batch_, evaluation_;
};

}  // namespace tessera
