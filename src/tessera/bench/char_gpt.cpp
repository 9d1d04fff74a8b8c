#include "tessera/bench/char_gpt.h"

#include "tessera/graph/scope.h"
#include "tessera/tensor/ops.h"

namespace tessera::bench {

namespace {

constexpr double kDeviation = 0.02;

Tensor split_heads(const Tensor& x, int64_t heads) {  // (B, T, C) -> (B, H, T, C / H)
  return permute(reshape(x, {x.size(0), x.size(1), heads, x.size(2) / heads}), {0, 2, 1, 3});
}

Tensor join_heads(const Tensor& x) {  // (B, H, T, D) -> (B, T, H · D)
  return flatten(permute(x, {0, 2, 1, 3}), 2);
}

}  // namespace

CharGpt::CharGpt(const CharGptConfig& config, int64_t seed) : config_(config) {
  const Random random(seed);
  const int64_t width = config.width;
  tokens_ = add_parameter("tokens", random.normal({config.vocabulary, width}, 0, kDeviation));
  positions_ = add_parameter("positions", random.normal({config.context, width}, 0, kDeviation));
  for (int64_t i = 0; i < config.layers; ++i) {
    const std::string block = cat("block", i, ".");
    const Norm norm1 = make_norm(block + "norm1"), norm2 = make_norm(block + "norm2");
    const Linear qkv = make_linear(block + "qkv", width, 3 * width, random);
    const Linear join = make_linear(block + "join", width, width, random);
    const Linear widen = make_linear(block + "widen", width, 4 * width, random);
    const Linear narrow = make_linear(block + "narrow", 4 * width, width, random);
    blocks_.push_back({norm1, norm2, qkv, join, widen, narrow});
  }
  norm_ = make_norm("norm");
}

Var CharGpt::add_parameter(const std::string& name, const Tensor& initial) {
  return parameters_.emplace_back(cast(initial, config_.dtype), name);
}

CharGpt::Linear CharGpt::make_linear(const std::string& name, int64_t in, int64_t out,
                                     const Random& random) {
  const Var weight = add_parameter(name + ".weight", random.normal({out, in}, 0, kDeviation));
  return {weight, add_parameter(name + ".bias", zeros({out}))};
}

CharGpt::Norm CharGpt::make_norm(const std::string& name) {
  const Var weight = add_parameter(name + ".weight", ones({config_.width}));
  return {weight, add_parameter(name + ".bias", zeros({config_.width}))};
}

Tensor CharGpt::Linear::operator()(const Tensor& x) const {
  return matmul(x, transpose(weight)) + bias;
}

Tensor CharGpt::Norm::operator()(const Tensor& x) const { return layer_norm(x, weight, bias); }

Tensor CharGpt::run_block(const Block& block, const Tensor& x) const {
  const std::vector<Tensor> qkv = chunk(block.qkv(block.norm1(x)), 3, -1);
  const Tensor mixed =
      attention(split_heads(qkv[0], config_.heads), split_heads(qkv[1], config_.heads),
                split_heads(qkv[2], config_.heads), {.causal = true});
  const Tensor y = x + block.join(join_heads(mixed));
  return y + block.narrow(gelu_tanh(block.widen(block.norm2(y))));
}

Tensor CharGpt::logits(const Tensor& tokens) const {
  Tensor x = take(tokens_, tokens) + slice(positions_, 0, 0, tokens.size(1));
  for (size_t i = 0; i < blocks_.size(); ++i) {
    const Scope scope(cat("block", i));
    x = run_block(blocks_[i], x);
  }
  return matmul(norm_(x), transpose(tokens_));
}

Tensor CharGpt::loss(const Tensor& tokens, const Tensor& targets) const {
  return cross_entropy(logits(tokens), targets);
}

double forward_flops(const CharGptConfig& config, int64_t tokens) {
  const double c = double(config.width), layers = double(config.layers);
  const double linears = layers * 12 * c * c + double(config.vocabulary) * c;
  const double attention = layers * c * double(config.context);  // two products, half of each
  return 2 * double(tokens) * (linears + attention);
}

}  // namespace tessera::bench
