// Choosing the next token by a model's logits, on the device. In this order, as HuggingFace's
// generate has it:
//   repetition penalty   logits of tokens that came before: / penalty, or · penalty where negative
//   temperature          logits / temperature; 0 takes the likeliest token and ignores what follows
//   top-k                the k likeliest
//   top-p                of these the likeliest that together have probability p (nucleus sampling)
//   min-p                of these what is at least min_p times as likely as the likeliest
// Among what is left a token is drawn by its probability.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/tensor/random.h"

namespace tessera {

struct SamplingOptions {
  double temperature = 1;
  int64_t top_k = 0;  // 0: all
  double top_p = 1;
  double min_p = 0;
  double repetition_penalty = 1;  // Keskar et al. 2019; above 1 repeats less
  int64_t seed = 0;
};

// Throws "generate: expected …, got …".
void check(const SamplingOptions& options);

// What of the options is structure: a compiled function keeps a Program for each. Numbers are not.
struct SamplingForm {
  bool greedy = false, penalised = false, nucleus = false, least = false;
  int64_t candidates = 0;  // the likeliest tokens, sorted; 0: all of them as they are

  std::vector<int64_t> statics() const;
  static SamplingForm from(std::span<const int64_t> statics);
};

// For a fixed number of rows. Its Vars are what the host sets and what passes from step to step.
class Sampler {
 public:
  Sampler(int64_t rows, int64_t vocabulary, Device device);

  // Sets the Vars for a new text. `texts`: what each row has so far, for the penalty.
  SamplingForm begin(const SamplingOptions& options,
                     const std::vector<std::vector<int32_t>>& texts);

  // In a compiled function: logits (rows, vocabulary) -> tokens (rows) i64, which count as having
  // come before from now on.
  Tensor choose(const Tensor& logits, const SamplingForm& form) const;

 private:
  Tensor penalised(const Tensor& logits) const;
  Tensor draw(const Tensor& logits, const SamplingForm& form) const;

  int64_t rows_, vocabulary_;
  Var temperature_, top_p_, min_p_, penalty_;  // 0-d f32
  Var top_k_;                                  // 0-d i64
  Var seen_;                                   // (rows, vocabulary) bool
  Random random_;
};

}  // namespace tessera
