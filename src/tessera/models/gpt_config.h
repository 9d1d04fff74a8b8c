// What a GPT-2 consists of, as a value, as a name, and as HuggingFace's config.json.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/io/json.h"

namespace tessera {

struct GptConfig {
  int64_t vocabulary = 50257;
  int64_t context = 1024;  // the longest sequence
  int64_t width = 768;
  int64_t layers = 12;
  int64_t heads = 12;     // a divisor of the width
  int64_t hidden = 0;     // of the feed-forward networks; 0: 4 · width
  double dropout = 0;     // of embeddings, of attention weights and of what blocks add, in training
  double epsilon = 1e-5;  // of the norms
  double deviation = 0.02;  // of initial weights
  bool bias = true;         // of Linears and norms; HuggingFace's GPT-2 always has them
  bool tied = true;         // the head is the token table
  std::optional<int64_t> end_token = {};  // that ends a text

  bool operator==(const GptConfig&) const = default;
};

// Throws "GptConfig: expected …, got …" where no model can be made of it.
void check(const GptConfig& config);

int64_t parameter_count(const GptConfig& config);
// Multiplications and additions that a token of a training step costs, 6N + 6LCT: N parameters
// without those of positions, L layers of width C, sequences of T tokens, the half of attention
// that is seen.
double training_flops(const GptConfig& config);

// "gpt2", "gpt2-medium", "gpt2-large", "gpt2-xl" as published; "char", six layers of width 384 over
// 256 characters; "nano", four of width 128 over 128. Throws for others, with the names there are.
GptConfig gpt_preset(std::string_view name);
std::vector<std::string> gpt_presets();

// HuggingFace's keys. Reading takes what is absent from GPT-2's defaults and refuses what this
// model does not compute (another activation, scaling by layers). `name` stands for the file in
// errors.
Json to_json(const GptConfig& config);
GptConfig parse_gpt_config(const Json& json, std::string_view name);

}  // namespace tessera
