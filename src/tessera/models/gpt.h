// GPT-2 (Radford et al. 2019), with HuggingFace's names of parameters: wte, wpe,
// h.N.{ln_1, attn.c_attn, attn.c_proj, ln_2, mlp.c_fc, mlp.c_proj}, ln_f, and lm_head, which is wte
// unless the configuration unties it. Weights are (out, in) here; files have HuggingFace's (in,
// out) for those of the blocks.
//
//   const Gpt model(gpt_preset("char"), Random(1));
//   backward(model.loss(tokens, targets));      // (B, T) each
//   save_pretrained("folder", model);
//   const std::unique_ptr<Gpt> same = load_gpt("folder");
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/models/gpt_config.h"
#include "tessera/nn/nn.h"

namespace tessera {

// What the backward pass computes again instead of reading it, of each block:
enum class Checkpointing : uint8_t {
  none,
  selective,  // everything but attention
  block,      // everything
};
// "none", "selective" or "block"; throws for others.
Checkpointing parse_checkpointing(std::string_view name);

// A block: x (B, T, C) -> x + attn(ln_1(x)), then the same with mlp(ln_2(x)).
class GptBlock : public Module {
 public:
  using Heads = MultiHeadAttention::Heads;
  // Attention between its two projections: (B, H, T, D) of each -> (B, H, T, D).
  using Mix = std::function<Tensor(const Heads& heads)>;

  GptBlock(std::string name, const GptConfig& config, const Random& random);

  Tensor operator()(const Tensor& x, const Mix& mix, Checkpointing checkpointing) const;
  Tensor mix_causally(const Heads& heads) const;  // each token with those before it

 private:
  Tensor run(const Tensor& x, const Mix& mix) const;
  Tensor run_selectively(const Tensor& x, const Mix& mix) const;
  Tensor add_mixed(const Tensor& x, const Tensor& mixed) const;
  Tensor add_mlp(const Tensor& x) const;

  LayerNorm ln_1_, ln_2_;
  MultiHeadAttention attention_;
  FeedForward mlp_;
  Dropout dropout_;
  Random random_;
};

class Gpt : public Layer {
 public:
  // GPT-2's initialisation: normal of the configuration's deviation, by √(2 · layers) less for what
  // is added to the residual stream; biases 0.
  Gpt(const GptConfig& config, const Random& random, std::string name = "gpt");
  // Weights of 0, for what is loaded; dropout draws from seed 0.
  explicit Gpt(const GptConfig& config, std::string name = "gpt");

  const GptConfig& config() const { return config_; }

  // Part of no checkpoint. Compiled functions trace anew.
  void set_checkpointing(Checkpointing checkpointing);

  // tokens (B, T) of integers, T <= context -> (B, T, vocabulary)
  Tensor logits(const Tensor& tokens) const { return (*this)(tokens); }
  // The mean cross-entropy of the targets (B, T), 0-d.
  Tensor loss(const Tensor& tokens, const Tensor& targets) const;

  // The two parts of logits(), for decoders: the residual stream behind the last block, and the
  // head over some of its positions. positions: integers (T) or (B, T); none: 0, 1, … T - 1.
  // mix(layer, heads) attends in the place of mix_causally().
  using Mix = std::function<Tensor(int64_t layer, const GptBlock::Heads& heads)>;
  Tensor hidden(const Tensor& tokens, const Tensor& positions = {}, const Mix& mix = {}) const;
  Tensor head(const Tensor& hidden) const;  // (…, C) -> (…, vocabulary)

  int64_t parameter_count() const;

 private:
  // HuggingFace calls the list of blocks h.
  struct Blocks : Module {
    Blocks(const GptConfig& config, const Random& random);
    std::vector<std::unique_ptr<GptBlock>> list;
  };

  Tensor forward(const Tensor& tokens) const override;
  Tensor embed(const Tensor& tokens, const Tensor& positions) const;

  GptConfig config_;
  Checkpointing checkpointing_ = Checkpointing::none;
  Embedding wte_, wpe_;  // (vocabulary, C), (context, C)
  Dropout dropout_;
  Blocks blocks_;
  LayerNorm ln_f_;
  Linear lm_head_;
};

// Files: config.json and model.safetensors in one folder, as HuggingFace's GPT2LMHeadModel writes
// them; each is replaced atomically. A model without biases is one that HuggingFace does not have.
void save_pretrained(const std::filesystem::path& folder, const Gpt& model);
// Throws with everything that is missing, unexpected or of wrong shape. Parameters are of `dtype`,
// on the default device.
std::unique_ptr<Gpt> load_gpt(const std::filesystem::path& folder, DType dtype = DType::f32);

// The parameters as they are in such a file, and from one into a model of its configuration.
NamedTensors to_pretrained(const Gpt& model);
void load_pretrained(const Gpt& model, const NamedTensors& tensors, std::string_view name);

}  // namespace tessera
