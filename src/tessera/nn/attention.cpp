#include "tessera/nn/attention.h"

#include "tessera/tensor/ops.h"

namespace tessera {

namespace {

MultiHeadAttentionOptions checked(const std::string& name, int64_t width,
                                  MultiHeadAttentionOptions o) {
  if (o.kv_heads == 0) o.kv_heads = o.heads;
  if (o.heads < 1 || width < 1 || width % o.heads != 0) {
    fail("MultiHeadAttention: expected a number of heads that divides the width for '", name,
         "', got ", o.heads, " and ", width);
  }
  if (o.kv_heads < 1 || o.heads % o.kv_heads != 0) {
    fail("MultiHeadAttention: expected kv_heads that divide the heads for '", name, "', got ",
         o.kv_heads, " and ", o.heads);
  }
  if (o.rotary && width / o.heads % 2 != 0) {
    fail("MultiHeadAttention: rotary embedding expects heads of even width for '", name, "', got ",
         width / o.heads);
  }
  if (!(o.dropout >= 0 && o.dropout < 1)) {
    fail("MultiHeadAttention: expected a dropout from 0 to below 1 for '", name, "', got ",
         o.dropout);
  }
  return o;
}

int64_t qkv_width(const MultiHeadAttentionOptions& o, int64_t width) {
  return width / o.heads * (o.heads + 2 * o.kv_heads);
}

Tensor split_heads(const Tensor& x, int64_t heads) {  // (B, T, H · D) -> (B, H, T, D)
  return permute(reshape(x, {x.size(0), x.size(1), heads, x.size(2) / heads}), {0, 2, 1, 3});
}

}  // namespace

MultiHeadAttention::MultiHeadAttention(std::string name, int64_t width, const Random& random,
                                       const MultiHeadAttentionOptions& options)
    : Layer(std::move(name)),
      options_(checked(this->name(), width, options)),
      width_(width),
      random_(random),
      qkv_(options.qkv_name, width, qkv_width(options_, width), random,
           {.bias = options.bias,
            .weight_init = options.weight_init,
            .bias_init = options.bias_init}),
      out_(options.out_name, width, width, random,
           {.bias = options.bias,
            .weight_init = options.out_init ? options.out_init : options.weight_init,
            .bias_init = options.bias_init}) {
  add_module(qkv_);
  add_module(out_);
}

MultiHeadAttention::Heads MultiHeadAttention::project(const Tensor& x,
                                                      const Tensor& positions) const {
  if (x.rank() != 3 || x.size(2) != width_) {
    fail_here(name(), ": expected an input (batch, length, ", width_, "), got ", x.shape());
  }
  const int64_t head = width_ / options_.heads, kv = head * options_.kv_heads;
  const std::vector<Tensor> parts = split(qkv_(x), std::vector<int64_t>{width_, kv, kv}, -1);
  Heads heads = {split_heads(parts[0], options_.heads), split_heads(parts[1], options_.kv_heads),
                 split_heads(parts[2], options_.kv_heads)};
  if (const auto& rotary_options = options_.rotary) {
    const Tensor at = positions.defined() ? positions : arange(x.size(1));
    const auto turn = [&](Tensor& part) {
      part = rotary(part, at, rotary_options->base, rotary_options->interleaved);
    };
    turn(heads.q);
    turn(heads.k);
  }
  return heads;
}

Tensor MultiHeadAttention::join(const Tensor& mixed) const {
  return out_(flatten(permute(mixed, {0, 2, 1, 3}), 2));
}

Tensor MultiHeadAttention::forward(const Tensor& x) const {
  const auto [q, k, v] = project(x);
  return join(attention(
      q, k, v, {.causal = options_.causal, .dropout = options_.dropout, .random = &random_}));
}

}  // namespace tessera
