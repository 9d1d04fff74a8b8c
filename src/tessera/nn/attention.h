// Multi-head attention of a sequence to itself.
#pragma once

#include <optional>

#include "tessera/nn/layers.h"

namespace tessera {

struct RotaryOptions {
  double base = 10000;
  bool interleaved = false;  // see rotary() in tensor/network.h
};

struct MultiHeadAttentionOptions {
  int64_t heads = 1;
  int64_t kv_heads = 0;  // heads of keys and values, a divisor of heads; 0: as many
  bool causal = true;
  bool bias = true;
  double dropout = 0;  // of the attention's weights, in training
  std::optional<RotaryOptions> rotary = {};
  Init weight_init = {}, bias_init = {};           // as Linear's
  Init out_init = {};                              // of the last weight; none: as weight_init
  std::string qkv_name = "qkv", out_name = "out";  // of its two Linears, for checkpoints
};

// x (B, T, C) -> (B, T, C), with H heads, G of them for keys and values, of D = C / H channels:
//   q, k, v = the rows of x · qkv.weightᵀ + qkv.bias, in this order: H·D, G·D and G·D channels
//   out(softmax(q kᵀ / √D) v)
class MultiHeadAttention : public Layer {
 public:
  MultiHeadAttention(std::string name, int64_t width, const Random& random,
                     const MultiHeadAttentionOptions& options);

  // Its two halves, for what comes between them: a cache of keys and values, masks, lengths.
  struct Heads {
    Tensor q;     // (B, H, T, D)
    Tensor k, v;  // (B, G, T, D)
  };
  // positions, of rotary embedding: integers (T), or (B, 1, T) where sequences differ; none: 0, 1,
  // … T - 1.
  Heads project(const Tensor& x, const Tensor& positions = {}) const;
  Tensor join(const Tensor& mixed) const;  // (B, H, T, D) -> (B, T, C)

  const Linear& qkv() const { return qkv_; }
  const Linear& out() const { return out_; }
  const MultiHeadAttentionOptions& options() const { return options_; }  // kv_heads filled in

 private:
  Tensor forward(const Tensor& x) const override;

  MultiHeadAttentionOptions options_;
  int64_t width_;
  Random random_;
  Linear qkv_;  // ((H + 2G) · D, C)
  Linear out_;  // (C, C)
};

}  // namespace tessera
