// The ops attention and attention_backward: building them, their types, their definitions.
#pragma once

#include <span>

#include "tessera/graph/node.h"

namespace tessera {

struct AttentionInputs {
  Value q, k, v;                // (B, H, T, D), (B, G, S, D), (B, G, S, E) of one floating type
  Value mask = {};              // (B, H, T, S): bool, true sees; or added, of the compute type
  Value lengths = {};           // (B) i64: keys from lengths[b] on are not seen
  Value key = {}, offset = {};  // 0-d i64: where dropout draws from; both or none
  bool causal = false;          // query t sees keys up to t + S - T
  double scale = 1;
  double dropout = 0;  // in [0, 1); read only where there is a key
};

namespace graph {

// y (B, H, T, E), and lse (B, H, T) of the compute type: log Σ exp(score) over the keys seen. A
// query that sees none (-inf in an added mask counts as not seen) has y 0 and lse 0. Dropout keeps
// weight (b, h, t, s) where uniform(key, offset) < 1 - dropout at its place in (B, H, T, S).
std::vector<Value> attention(const AttentionInputs& in);

// dq, dk, dv from the gradient of y and what `attention` gave.
std::vector<Value> attention_backward(const Value& g, const AttentionInputs& in, const Value& y,
                                      const Value& lse);

}  // namespace graph

// The operands of either op.
AttentionInputs attention_inputs(const Node& node);

std::vector<Type> attention_types(Op op, std::span<const Value> in, const Attrs& attrs);

std::vector<Value> attention_composite(const Node& node);
std::vector<Value> attention_backward_composite(const Node& node);

// The gradient of the scores, and so that of an added mask: (B, H, T, S).
Value attention_scores_gradient(const Value& g, const AttentionInputs& in, const Value& y,
                                const Value& lse);

}  // namespace tessera
