// Tokens per second of a training step of GPT-2 124M (bench/gpt_run.h) on the default device: AdamW
// with clipping, steps queued and waited for four at a time. bench/peers/gpt2_step.py times the
// same step in PyTorch.
//
//   bench_gpt2_step [STEPS] [BATCH] [CONTEXT] [f32|tf32|bf16] [none|selective|block]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "tessera/bench/gpt_run.h"
#include "tessera/tensor/device.h"
#include "tessera/tensor/stats.h"
#include "tessera/tessera.h"

using namespace tessera;

int main(int count, char** words) {
  init();
  constexpr int kQueued = 4;
  const auto number = [&](int at, int otherwise) {
    return count > at ? std::atoi(words[at]) : otherwise;
  };
  const std::string_view precision = count > 4 ? words[4] : "bf16";
  const int steps = number(1, 20), batch = number(2, 64);
  GptConfig config = gpt_preset("gpt2");
  config.context = number(3, 1024);
  bench::GptVariant variant;
  variant.tf32 = precision == "tf32";
  if (precision == "bf16") variant.dtype = DType::bf16;
  if (count > 5) variant.checkpointing = parse_checkpointing(words[5]);
  const Device device = default_device();
  const bench::GptRun run(config, batch, bench::GptPart::iteration, variant, device);
  std::printf("first loss %.4f\n", double(run.outputs(1)[0][0]));
  const double last = double(run.outputs(2)[0].back());
  std::vector<double> times;
  for (int i = 0; i < std::max(1, steps / kQueued); ++i) {
    const auto begin = std::chrono::steady_clock::now();
    for (int k = 0; k < kQueued; ++k) run.run();
    run.wait();
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    times.push_back(seconds.count() / kQueued);
  }
  std::sort(times.begin(), times.end());
  const double median = times[times.size() / 2], tokens = double(batch * config.context);
  std::printf("loss after 3 steps %.4f; %s, %.2f GB planned, %.2f GB held\n", last,
              to_string(device).c_str(), double(run.memory()) * 1e-9,
              double(memory_stats(device).peak + memory_stats(device).arena) * 1e-9);
  std::printf("step %.1f ms (best %.1f), %.0f tokens/s, %.1f TFLOP/s\n", median * 1e3,
              times[0] * 1e3, tokens / median, tokens * training_flops(config) / median * 1e-12);
}
