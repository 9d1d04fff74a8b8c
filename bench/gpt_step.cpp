// Tokens per second of a training step of the character GPT (models/gpt.h, "char", no
// dropout) on the CPU: B = 8, T = 256, f32, AdamW, the loss left where it is.
// bench/peers/gpt_step.py times the same step in PyTorch.
//
//   bench_gpt_step [STEPS] [profile]    with a second word: time by kernel, after the measurement
//   bench_gpt_step turns                a step for each line of the input, and its seconds
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/models/gpt.h"
#include "tessera/optim/optim.h"
#include "tessera/tensor/ops.h"
#include "tessera/tessera.h"

using namespace tessera;

int main(int count, char** words) {
  init();
  set_default_device("cpu");  // where a card is the default, only launches would be timed
  constexpr int64_t kBatch = 8;
  const int steps = count > 1 ? std::atoi(words[1]) : 10;
  GptConfig config = gpt_preset("char");
  config.dropout = 0;
  const Random random(1);
  const Gpt gpt(config, random);
  AdamW optimizer(gpt.parameters());
  const auto step = compile([&](const Tensor& tokens, const Tensor& targets) {
    const Tensor loss = gpt.loss(tokens, targets);
    backward(loss);
    optimizer.step();
    return loss;
  });
  const Shape batch = {kBatch, config.context};
  const Tensor x = random.randint(batch, 0, config.vocabulary);
  const Tensor y = random.randint(batch, 0, config.vocabulary);
  const auto seconds = [](auto&& body) {
    const auto begin = std::chrono::steady_clock::now();
    body();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  Tensor loss;
  const double first = seconds([&] { loss = step(x, y); });
  std::printf("first loss %.6f\n", loss.item());
  std::fflush(stdout);
  step(x, y);
  if (count > 1 && words[1] == std::string_view("turns")) {
    for (std::string line; std::getline(std::cin, line);) {
      std::cout << seconds([&] { step(x, y).eval(); }) << std::endl;
    }
    return 0;
  }
  std::vector<double> times;
  for (int i = 0; i < steps; ++i) times.push_back(seconds([&] { loss = step(x, y); }));
  std::sort(times.begin(), times.end());
  const double median = times[times.size() / 2];
  const int64_t tokens = numel(batch);
  const Report& report = step.program().report;
  std::printf("loss after %d steps %.6f; first step %.2f s\n", steps + 2, loss.item(), first);
  std::printf("%d kernels, %.2f GB moved, arena %.1f MB\n", report.kernels,
              double(report.bytes_moved) * 1e-9, double(report.temporary_bytes) * 1e-6);
  std::printf("step %.1f ms (best %.1f), %.0f tokens/s, %.0f GFLOP/s\n", median * 1e3,
              times[0] * 1e3, double(tokens) / median,
              double(tokens) * training_flops(config) / median * 1e-9);
  if (count > 2) {
    Profile profile;
    step.set_profile(&profile);
    for (int i = 0; i < 3; ++i) step(x, y);
    std::printf("%s", to_string(profile).c_str());
  }
}
