// Work on the default device whose result is known beforehand: for tests of real devices, with
// sizes that only these can hold, and of the stand-in, with small ones.
#pragma once

#include <cstdint>
#include <vector>

#include "tessera/base/device.h"
#include "tessera/base/dtype.h"
#include "tessera/runtime/counters.h"

namespace tessera::test {

// Maps and sums of n elements, u8 and bf16, checked at some places and by the sum.
// Takes some 4 n bytes.
void check_map_and_sum(int64_t n);

// Rows and elements picked from a table of n bytes.
void check_index_select(int64_t n);

// Fills `bytes` of the device, reads them back as a sum, and gives them back.
void check_memory(Device device, int64_t bytes);

// A program of that many kernels gives what the CPU gives, and is one launch from its third run on.
void check_replay(Device device, int kernels);

// relu of a product and a bias is one kernel; NaN stays NaN, and its gradient is as where the sum
// was at most zero, of either sign.
void check_relu(DType dtype);

// softmax and layer_norm of f32 and bf16 rows give what the CPU gives; by generated kernels, or by
// those that a device has.
void check_long_rows(Device device, int64_t rows, int64_t columns, bool generated);

struct TrainingRun {
  std::vector<float> losses;  // of 20 steps
  CounterValues steady;       // what ten more add, which nobody reads
};
TrainingRun train_mlp(Device device);  // two layers, SGD
TrainingRun train_gpt(Device device);  // a character GPT of two layers, AdamW

// Losses within 1e-4 of the CPU's; no allocation, compilation or wait, and one launch a step.
void check_training(TrainingRun (*train)(Device), Device device);

}  // namespace tessera::test
