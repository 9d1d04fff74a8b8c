// What `tessera train` shows of a run.
#pragma once

#include <string>
#include <vector>

#include "tessera/base/device.h"
#include "tessera/models/gpt_config.h"
#include "tessera/train/memory_plan.h"
#include "tessera/train/record.h"

namespace tessera::cli {

// A table of what takes how much, the largest scopes of the temporaries below.
std::string memory_table(const MemoryPlan& plan);

// FLOP/s that the device can reach at most, measured: of multiply-adds in f32 on a CPU, of a large
// product of that type elsewhere.
double measured_peak(Device device, DType dtype);

struct Rates {
  int64_t steps = 0;  // in all
  double tokens_per_step = 0;
  double flops_per_token = 0;
  double peak = 0;  // FLOP/s
};

// "step 120/500  loss 2.345  lr 0.00098  12,300 tok/s  41 % of 215 GFLOP/s  120.0 MiB  1:23 left".
// `before`: the record that its speed is reckoned from.
std::string progress_line(const StepRecord& now, const StepRecord& before, const Rates& rates,
                          int64_t memory);

// loss.html: the losses of a run over its steps.
std::string loss_page(const std::vector<StepRecord>& records, const std::string& title);

}  // namespace tessera::cli
