// The model that training speed is quoted for: a character GPT as small ones are usually set up,
// six layers of width 384 over 256 characters. bench/peers/gpt_step.py builds the same in PyTorch.
#pragma once

#include <vector>

#include "tessera/tensor/random.h"

namespace tessera::bench {

struct CharGptConfig {
  int64_t layers = 6, heads = 6, width = 384, context = 256, vocabulary = 65;
  DType dtype = DType::f32;
};

// Multiplications and additions of the matrix products in one forward pass over sequences of
// `context` tokens, `tokens` in all, the causal half of attention counted once. A backward pass has
// twice as many.
double forward_flops(const CharGptConfig& config, int64_t tokens);

class CharGpt {
 public:
  // Weights from a normal distribution of deviation 0.02, equal values for every dtype.
  CharGpt(const CharGptConfig& config, int64_t seed);

  // All Vars; the head shares the token table.
  const std::vector<Var>& parameters() const { return parameters_; }

  Tensor logits(const Tensor& tokens) const;                       // (B, T) -> (B, T, vocabulary)
  Tensor loss(const Tensor& tokens, const Tensor& targets) const;  // both (B, T) -> 0-d

 private:
  struct Linear {
    Var weight, bias;  // (out, in), (out)
    Tensor operator()(const Tensor& x) const;
  };
  struct Norm {
    Var weight, bias;  // (width)
    Tensor operator()(const Tensor& x) const;
  };
  struct Block {
    Norm norm1, norm2;
    Linear qkv, join, widen, narrow;
  };

  Var add_parameter(const std::string& name, const Tensor& initial);
  Linear make_linear(const std::string& name, int64_t in, int64_t out, const Random& random);
  Norm make_norm(const std::string& name);
  Tensor run_block(const Block& block, const Tensor& x) const;

  CharGptConfig config_;
  std::vector<Var> parameters_;
  Var tokens_, positions_;  // (vocabulary, width), (context, width)
  std::vector<Block> blocks_;
  Norm norm_;
};

}  // namespace tessera::bench
