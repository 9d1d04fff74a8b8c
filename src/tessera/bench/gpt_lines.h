// Lines of the suite "step" about GPTs of one size: what a step consists of, each layer alone, and
// other ways of taking the step.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tessera/bench/case.h"
#include "tessera/models/gpt_config.h"

namespace tessera::bench {

struct GptSize {
  std::string name;  // "GPT-2 64x1024"
  GptConfig config;  // context: the length of the sequences
  int64_t batch;     // at most: see largest_contest()
  DType dtype = DType::f32;
  bool needs_gpu = false;
  double bytes_per_token = 1;  // of text
};

inline constexpr double kGptSeconds = 4;  // Case::most_seconds of these lines

// Forward, forward and backward, optimiser, iteration.
std::vector<Case> gpt_part_cases(const GptSize& size);
Case gpt_iteration_case(const GptSize& size);
// Iterations: unfused, with checkpoints, in other precisions.
std::vector<Case> gpt_variant_cases(const GptSize& size);
// Each layer of a block, the embedding and the head: forward, and with backward.
std::vector<Case> gpt_layer_cases(const GptSize& size);

// "GPT-2 64x1024 bf16, forward"
std::string gpt_line_name(const GptSize& size, std::string_view precision, std::string_view what);

// Where the reference of such lines is computed: the CPU in f64, or where that would take too long
// the first GPU in f32. REQUIRES one there.
struct GptReference {
  Device device;
  DType dtype;
};
GptReference gpt_reference(const GptSize& size, const Setting& setting);

// With the line's batch, or half, a quarter … of it where memory does not hold what `make` makes.
Contest largest_contest(const GptSize& size, const std::function<Contest(const GptSize&)>& make);

// The devices of the setting that a line has columns for.
std::vector<Device> gpt_devices(bool needs_gpu, const Setting& setting);

}  // namespace tessera::bench
