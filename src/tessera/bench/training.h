// Lines about whole training steps, of any model.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tessera/bench/case.h"
#include "tessera/tensor/tensor.h"

namespace tessera::bench {

inline constexpr int kCheckedSteps = 5;

// A model with its optimiser and its batch, on what was the default device when it was made.
struct Training {
  // One step; the loss, 0-d. `from_host`: the batch is sent to the device first.
  std::function<Tensor(bool from_host)> step;
};

struct TrainingLine {
  std::string name, unit;  // "samples/s" or "tokens/s"
  double amount = 0;       // of these in a step
  double flops = 0;        // of a step's matrix products
  bool slow = false;
  std::function<Training()> make;
  // The losses of the first kCheckedSteps steps, in f64; each sees what the steps before it did to
  // the parameters.
  std::function<std::vector<double>()> losses;
  double tolerance = 0;  // of a loss, ulps of f32
  // The same step as a plain loop, returning its loss; null: takes too long.
  std::function<std::function<double()>()> plain = nullptr;
};

Case to_case(TrainingLine line);

}  // namespace tessera::bench
