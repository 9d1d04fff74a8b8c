// What a step of training takes of a device's memory, known before the first step.
#pragma once

#include <cstdint>
#include <vector>

#include "tessera/compile/program.h"

namespace tessera {

struct MemoryPlan {
  int64_t parameters = 0;                 // and buffers of the model
  int64_t optimizer = 0;                  // moments, masters, counters
  int64_t sums = 0;                       // of gradients, where batches are accumulated
  int64_t averages = 0;                   // of parameters
  int64_t batches = 0;                    // inputs and results of the step
  int64_t temporaries = 0;                // activations, gradients and the like, at their peak
  std::vector<ScopeBytes> peak_by_scope;  // of the temporaries, largest first

  int64_t total() const { return parameters + optimizer + sums + averages + batches + temporaries; }
};

}  // namespace tessera
