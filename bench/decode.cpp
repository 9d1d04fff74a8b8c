// Generation by a GPT-2 of random weights, greedily: tokens/s behind the first, of which the prompt
// is part. bench/peers/gpt2_decode.py times the same in PyTorch.
//
//   bench_decode [--device cuda:0] [--dtype bf16] [--model gpt2] [--prompt 32] [--tokens 200]
//                [--rounds 5] [BATCH...]     (default: 1 64)
//
// Prints one JSON object per batch: the best round and the median.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "tessera/infer/generator.h"
#include "tessera/models/gpt.h"
#include "tessera/runtime/registry.h"
#include "tessera/tessera.h"

using namespace tessera;

int main(int count, char** words) {
  init();
  Device device = preferred_device();
  DType dtype = DType::bf16;
  std::string preset = "gpt2";
  int64_t prompt = 32, tokens = 200, rounds = 5;
  std::vector<int64_t> batches;
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    const auto value = [&] { return std::string(i + 1 < count ? words[++i] : ""); };
    if (word == "--device") {
      device = Device(value());
    } else if (word == "--dtype") {
      dtype = value() == "f32" ? DType::f32 : DType::bf16;
    } else if (word == "--model") {
      preset = value();
    } else if (word == "--prompt") {
      prompt = std::atoll(value().c_str());
    } else if (word == "--tokens") {
      tokens = std::atoll(value().c_str());
    } else if (word == "--rounds") {
      rounds = std::max(1ll, std::atoll(value().c_str()));
    } else {
      batches.push_back(std::atoll(word.c_str()));
    }
  }
  if (batches.empty()) batches = {1, 64};
  set_default_device(device);
  const Gpt model(gpt_preset(preset), Random(1));
  model.to(dtype);
  Generator generator(model);
  for (const int64_t batch : batches) {
    std::vector<Tokens> prompts;
    prompts.assign(size_t(batch), Tokens(size_t(prompt), 0));
    for (size_t r = 0; r < prompts.size(); ++r) {
      for (size_t i = 0; i < prompts[r].size(); ++i) {
        prompts[r][i] = int32_t((r * 7919 + i * 104729) % size_t(model.config().vocabulary));
      }
    }
    const GenerateOptions options = {.tokens = tokens, .sampling = {.temperature = 0}};
    std::vector<double> rates;
    for (int64_t round = -1; round < rounds; ++round) {
      using Clock = std::chrono::steady_clock;
      Clock::time_point first, last;
      generator.generate(prompts, options, [&](int64_t row, int32_t) {
        last = Clock::now();
        if (row == 0 && first == Clock::time_point()) first = last;
        return true;
      });
      const double seconds = std::chrono::duration<double>(last - first).count();
      if (round >= 0) rates.push_back(double(batch * (tokens - 1)) / seconds);
    }
    std::sort(rates.begin(), rates.end());
    std::printf("{\"name\": \"decode_%s_%lld_%s\", \"tokens_per_s\": %.0f, \"median\": %.0f}\n",
                preset.c_str(), static_cast<long long>(batch), std::string(name(dtype)).c_str(),
                rates.back(), rates[rates.size() / 2]);
    std::fflush(stdout);
  }
}
