#include "tessera/models/gpt.h"

#include <cmath>

#include "tessera/graph/scope.h"
#include "tessera/tensor/autograd.h"
#include "tessera/tensor/compiled.h"
#include "tessera/tensor/op_support.h"
#include "tessera/tensor/ops.h"

namespace tessera {

namespace {

const GptConfig& checked(const GptConfig& config) {
  check(config);
  return config;
}

// Drawing 124 million zeros would take seconds.
Init drawn(double deviation) {
  return deviation == 0 ? constant_init(0) : normal_init(0, deviation);
}

GptConfig without_deviation(GptConfig config) {
  config.deviation = 0;
  return config;
}

MultiHeadAttentionOptions attention_options(const GptConfig& c, const Init& weight,
                                            const Init& residual) {
  MultiHeadAttentionOptions options;
  options.heads = c.heads;
  options.bias = c.bias;
  options.dropout = c.dropout;
  options.weight_init = weight;
  options.bias_init = constant_init(0);
  options.out_init = residual;
  options.qkv_name = "c_attn";
  options.out_name = "c_proj";
  return options;
}

FeedForwardOptions mlp_options(const GptConfig& c, const Init& weight, const Init& residual) {
  FeedForwardOptions options;
  options.bias = c.bias;
  options.weight_init = weight;
  options.bias_init = constant_init(0);
  options.down_init = residual;
  options.up_name = "c_fc";
  options.down_name = "c_proj";
  return options;
}

Init weight_init(const GptConfig& c) { return drawn(c.deviation); }
Init residual_init(const GptConfig& c) {
  return drawn(c.deviation / std::sqrt(2.0 * double(c.layers)));
}

}  // namespace

Checkpointing parse_checkpointing(std::string_view name) {
  if (name == "none") return Checkpointing::none;
  if (name == "selective") return Checkpointing::selective;
  if (name == "block") return Checkpointing::block;
  fail("checkpointing: expected none, selective or block, got '", name, "'");
}

// Blocks ----------------------------------------------------------------------------------------

GptBlock::GptBlock(std::string name, const GptConfig& c, const Random& random)
    : Module(std::move(name)),
      ln_1_("ln_1", c.width, c.epsilon, c.bias),
      ln_2_("ln_2", c.width, c.epsilon, c.bias),
      attention_("attn", c.width, random, attention_options(c, weight_init(c), residual_init(c))),
      mlp_("mlp", c.width, c.hidden == 0 ? 4 * c.width : c.hidden, random,
           mlp_options(c, weight_init(c), residual_init(c))),
      dropout_("dropout", c.dropout, random),
      random_(random) {
  add_module(ln_1_);
  add_module(attention_);
  add_module(ln_2_);
  add_module(mlp_);
  add_module(dropout_);
}

Tensor GptBlock::mix_causally(const Heads& heads) const {
  return attention(heads.q, heads.k, heads.v,
                   {.causal = true, .dropout = attention_.options().dropout, .random = &random_});
}

Tensor GptBlock::add_mixed(const Tensor& x, const Tensor& mixed) const {
  return x + dropout_(attention_.join(mixed));
}

Tensor GptBlock::add_mlp(const Tensor& x) const { return x + dropout_(mlp_(ln_2_(x))); }

Tensor GptBlock::run(const Tensor& x, const Mix& mix) const {
  return add_mlp(add_mixed(x, mix(attention_.project(ln_1_(x)))));
}

// What a region takes and gives is kept: the residual stream between blocks and the result of
// attention, so that attention itself is not computed again.
Tensor GptBlock::run_selectively(const Tensor& x, const Mix& mix) const {
  const auto mixed = [&](const std::vector<Tensor>& in) -> std::vector<Tensor> {
    return {mix(attention_.project(ln_1_(in[0])))};
  };
  const auto rest = [&](const std::vector<Tensor>& in) -> std::vector<Tensor> {
    return {add_mlp(add_mixed(in[0], in[1]))};
  };
  return checkpoint(rest, {x, checkpoint(mixed, {x})[0]})[0];
}

Tensor GptBlock::operator()(const Tensor& x, const Mix& mix, Checkpointing checkpointing) const {
  const Scope scope(cat("h.", name()));
  const ModeGuard mode(is_training() && follows_training());
  switch (checkpointing) {
    case Checkpointing::none: return run(x, mix);
    case Checkpointing::selective: return run_selectively(x, mix);
    case Checkpointing::block:
      return checkpoint(
          [&](const std::vector<Tensor>& in) -> std::vector<Tensor> { return {run(in[0], mix)}; },
          {x})[0];
  }
  TESSERA_ASSERT(false);
}

// The model -------------------------------------------------------------------------------------

Gpt::Blocks::Blocks(const GptConfig& config, const Random& random) : Module("h") {
  for (int64_t i = 0; i < config.layers; ++i) {
    list.push_back(std::make_unique<GptBlock>(cat(i), config, random));
    add_module(*list.back());
  }
}

Gpt::Gpt(const GptConfig& config, const Random& random, std::string name)
    : Layer(std::move(name)),
      config_(checked(config)),
      wte_("wte", config.vocabulary, config.width, random, weight_init(config)),
      wpe_("wpe", config.context, config.width, random, weight_init(config)),
      dropout_("dropout", config.dropout, random),
      blocks_(config, random),
      ln_f_("ln_f", config.width, config.epsilon, config.bias),
      lm_head_(config.tied ? Linear("lm_head", wte_.weight())
                           : Linear("lm_head", config.width, config.vocabulary, random,
                                    {.bias = false, .weight_init = weight_init(config)})) {
  add_module(wte_);
  add_module(wpe_);
  add_module(dropout_);
  add_module(blocks_);
  add_module(ln_f_);
  add_module(lm_head_);
}

Gpt::Gpt(const GptConfig& config, std::string name)
    : Gpt(without_deviation(config), Random(0), std::move(name)) {
  config_.deviation = config.deviation;
}

void Gpt::set_checkpointing(Checkpointing checkpointing) {
  checkpointing_ = checkpointing;
  forget_traces();
}

Tensor Gpt::embed(const Tensor& tokens, const Tensor& positions) const {
  if (tokens.rank() != 2 || tokens.size(1) > config_.context) {
    fail_here(name(), ": expected tokens (batch, at most ", config_.context, "), got ",
              tokens.shape());
  }
  const Tensor places =
      positions.defined() ? wpe_(positions) : slice(wpe_.weight(), 0, 0, tokens.size(1));
  return dropout_(wte_(tokens) + places);
}

Tensor Gpt::hidden(const Tensor& tokens, const Tensor& positions, const Mix& mix) const {
  Tensor x = embed(tokens, positions);
  for (size_t i = 0; i < blocks_.list.size(); ++i) {
    const GptBlock& block = *blocks_.list[i];
    const auto attend = [&](const GptBlock::Heads& heads) {
      return mix ? mix(int64_t(i), heads) : block.mix_causally(heads);
    };
    // A mix of somebody else may write caches: it runs once.
    x = block(x, attend, mix ? Checkpointing::none : checkpointing_);
  }
  return x;
}

Tensor Gpt::head(const Tensor& hidden) const { return lm_head_(ln_f_(hidden)); }

Tensor Gpt::forward(const Tensor& tokens) const { return head(hidden(tokens)); }

Tensor Gpt::loss(const Tensor& tokens, const Tensor& targets) const {
  return cross_entropy(logits(tokens), targets);
}

int64_t Gpt::parameter_count() const {
  int64_t count = 0;
  for (const Var& var : parameters()) count += numel(var.shape());
  return count;
}

}  // namespace tessera
