#include "tessera/graph/attention.h"

#include <bit>
#include <limits>

#include "tessera/base/attention_options.h"
#include "tessera/graph/build.h"

namespace tessera {

namespace {

using namespace graph;
using Values = std::vector<Value>;

constexpr double kUnseen = -std::numeric_limits<double>::infinity();

int64_t options_of(const AttentionInputs& in) {
  return (in.causal ? kAttentionCausal : 0) | (in.mask ? kAttentionMask : 0) |
         (in.lengths ? kAttentionLengths : 0) | (in.key ? kAttentionDropout : 0);
}

Attrs attrs_of(const AttentionInputs& in) {
  Attrs attrs;
  attrs.axis = options_of(in);
  attrs.bits = scalar_bits(DType::f64, in.scale);
  if (in.key) attrs.a = {std::bit_cast<int64_t>(in.dropout)};
  return attrs;
}

void append_optional(Values& values, const AttentionInputs& in) {
  for (const Value* value : {&in.mask, &in.lengths, &in.key, &in.offset}) {
    if (*value) values.push_back(*value);
  }
}

// q, k and v start at `first`, what the options name at `rest`.
AttentionInputs inputs_at(std::span<const Value> in, const Attrs& attrs, size_t first,
                          size_t rest) {
  TESSERA_ASSERT(in.size() == rest + size_t(attention_operands(attrs.axis)));
  AttentionInputs result;
  result.q = in[first];
  result.k = in[first + 1];
  result.v = in[first + 2];
  if (attrs.axis & kAttentionMask) result.mask = in[rest++];
  if (attrs.axis & kAttentionLengths) result.lengths = in[rest++];
  if (attrs.axis & kAttentionDropout) {
    result.key = in[rest];
    result.offset = in[rest + 1];
    result.dropout = std::bit_cast<double>(attrs.a[0]);
  }
  result.causal = (attrs.axis & kAttentionCausal) != 0;
  result.scale = scalar_as_double(DType::f64, attrs.bits);
  return result;
}

AttentionInputs inputs_of(Op op, std::span<const Value> in, const Attrs& attrs) {
  return op == Op::attention ? inputs_at(in, attrs, 0, 3) : inputs_at(in, attrs, 1, 6);
}

// --- Types --------------------------------------------------------------------------------------

void expect_type(Op op, const char* what, const Value& value, const Type& type) {
  if (value && value.type() != type) {
    fail(name(op), ": expected ", what, " of type ", type, ", got ", value.type());
  }
}

bool fits(const Shape& q, const Shape& k, const Shape& v) {
  if (q.rank() != 4 || k.rank() != 4 || v.rank() != 4) return false;
  const bool heads = k[1] == 0 ? q[1] == 0 : q[1] % k[1] == 0;
  return heads && q[0] == k[0] && k[0] == v[0] && k[1] == v[1] && q[3] == k[3] && k[2] == v[2];
}

// --- Definitions --------------------------------------------------------------------------------

struct Extents {
  explicit Extents(const AttentionInputs& in)
      : batch(in.q.shape()[0]),
        heads(in.q.shape()[1]),
        groups(in.k.shape()[1]),
        queries(in.q.shape()[2]),
        keys(in.k.shape()[2]) {}

  int64_t batch, heads, groups, queries, keys;

  Shape scores() const { return {batch, heads, queries, keys}; }
  Shape rows() const { return {batch, heads, queries, 1}; }
  // Heads that share keys are rows of one product, so that keys are never repeated.
  Shape grouped(int64_t columns) const {
    return {batch, groups, groups == 0 ? 0 : heads / groups * queries, columns};
  }
};

Value grouped(const Extents& e, const Value& x) { return reshape(x, e.grouped(x.shape().back())); }

Value wide(const Value& x) { return cast(x, compute_type(x.dtype())); }

// Which scores count, broadcastable to (B, H, T, S); empty where all do.
Value seen_of(const Extents& e, const AttentionInputs& in) {
  Value seen;
  auto narrow = [&seen](const Value& more) {
    seen = seen ? apply(Op::logical_and, seen, more) : more;
  };
  if (in.causal) {
    const Shape square = {e.queries, e.keys};
    const Value last = iota(DType::i64, square, 0) + constant_int(DType::i64, e.keys - e.queries);
    narrow(apply(Op::le, iota(DType::i64, square, 1), last));
  }
  if (in.lengths) {
    narrow(apply(Op::lt, iota(DType::i64, {e.keys}, 0), reshape(in.lengths, {e.batch, 1, 1, 1})));
  }
  if (in.mask && in.mask.dtype() == DType::boolean) narrow(in.mask);
  if (in.mask && in.mask.dtype() != DType::boolean) {
    narrow(apply(Op::ne, in.mask, constant(in.mask.dtype(), kUnseen)));
  }
  return seen;
}

Value scaled_queries(const Extents& e, const AttentionInputs& in) {
  return grouped(e, wide(in.q) * in.scale);
}

// (B, H, T, S), -inf where a key is not seen.
Value scores_of(const Extents& e, const AttentionInputs& in) {
  Value scores = reshape(matmul(scaled_queries(e, in), swap_last(wide(in.k))), e.scores());
  if (in.mask && in.mask.dtype() != DType::boolean) scores = scores + in.mask;
  const Value seen = seen_of(e, in);
  return seen ? where(seen, scores, constant(scores.dtype(), kUnseen)) : scores;
}

// x (B, H, T, S) with what dropout leaves of it.
Value dropped(const Extents& e, const AttentionInputs& in, const Value& x) {
  if (!in.key) return x;
  const Value draw = graph::uniform(in.key, in.offset, e.scores());
  const Value kept = apply(Op::lt, draw, constant(DType::f32, 1 - in.dropout));
  return where(kept, x * (1 / (1 - in.dropout)), constant(x.dtype(), 0));
}

struct Recomputed {
  Value weights;          // before dropout
  Value scores_gradient;  // (B, H, T, S)
};

// With P = exp(scores - lse) and f what dropout does:
//   dscores = P · (f(g vᵀ) - Σ g · y)
Recomputed recompute(const Extents& e, const Value& g, const AttentionInputs& in, const Value& y,
                     const Value& lse) {
  const Value weights = apply(Op::exp, scores_of(e, in) - reshape(lse, e.rows()));
  const Value product = matmul(grouped(e, wide(g)), swap_last(wide(in.v)));
  const Value along = reduce(Op::sum, wide(g) * wide(y), {3});
  return {weights, weights * (dropped(e, in, reshape(product, e.scores())) - along)};
}

}  // namespace

namespace graph {

std::vector<Value> attention(const AttentionInputs& in) {
  Values inputs = {in.q, in.k, in.v};
  append_optional(inputs, in);
  return outputs_of(make_node(Op::attention, inputs, attrs_of(in)));
}

std::vector<Value> attention_backward(const Value& g, const AttentionInputs& in, const Value& y,
                                      const Value& lse) {
  Values inputs = {g, in.q, in.k, in.v, y, lse};
  append_optional(inputs, in);
  return outputs_of(make_node(Op::attention_backward, inputs, attrs_of(in)));
}

}  // namespace graph

AttentionInputs attention_inputs(const Node& node) {
  return inputs_of(node.op, node.inputs(), node.attrs);
}

std::vector<Type> attention_types(Op op, std::span<const Value> in, const Attrs& attrs) {
  const AttentionInputs x = inputs_of(op, in, attrs);
  const Shape &q = x.q.shape(), &k = x.k.shape(), &v = x.v.shape();
  if (!fits(q, k, v)) {
    fail(name(op),
         ": expected q (B, H, T, D), k (B, G, S, D) and v (B, G, S, E), H a multiple of G, got ", q,
         ", ", k, " and ", v);
  }
  const DType dtype = x.q.dtype(), compute = compute_type(dtype);
  if (!is_float(dtype)) fail(name(op), ": expected floating-point queries, got ", dtype);
  expect_type(op, "k", x.k, {dtype, k});
  expect_type(op, "v", x.v, {dtype, v});
  const Shape scores = {q[0], q[1], q[2], k[2]};
  const bool is_bool = x.mask && x.mask.dtype() == DType::boolean;
  expect_type(op, "a mask", x.mask, {is_bool ? DType::boolean : compute, scores});
  expect_type(op, "lengths", x.lengths, {DType::i64, {q[0]}});
  expect_type(op, "a key", x.key, {DType::i64, {}});
  expect_type(op, "an offset", x.offset, {DType::i64, {}});
  numel(scores);
  const Type y = {dtype, {q[0], q[1], q[2], v[3]}}, lse = {compute, {q[0], q[1], q[2]}};
  if (op == Op::attention) return {y, lse};
  expect_type(op, "a gradient", in[0], y);
  expect_type(op, "y", in[4], y);
  expect_type(op, "lse", in[5], lse);
  return {x.q.type(), x.k.type(), x.v.type()};
}

std::vector<Value> attention_composite(const Node& node) {
  const AttentionInputs in = attention_inputs(node);
  const Extents e(in);
  if (e.keys == 0) return {full(node.types[0], 0), full(node.types[1], 0)};
  const Value scores = scores_of(e, in);
  const Value zero = constant(scores.dtype(), 0), one = constant(scores.dtype(), 1);
  // The shift changes no result, so it needs no gradient; without a key it is 0, for -inf less -inf
  // has no value.
  const Value top = reduce(Op::max, scores, {3});
  const Value blind = apply(Op::eq, top, constant(top.dtype(), kUnseen));
  const Value shift = stop_gradient(where(blind, zero, top));
  const Value weights = apply(Op::exp, scores - shift);
  const Value sum = reduce(Op::sum, weights, {3});
  const Value total = where(blind, one, sum);
  const Value kept = grouped(e, dropped(e, in, weights / total));
  const Value y = reshape(matmul(kept, wide(in.v)), node.types[0].shape);
  const Value lse = reshape(shift + apply(Op::log, total), node.types[1].shape);
  return {cast(y, node.types[0].dtype), lse};
}

std::vector<Value> attention_backward_composite(const Node& node) {
  const AttentionInputs in = attention_inputs(node);
  const Extents e(in);
  const Value &g = node.inputs()[0], &y = node.inputs()[4], &lse = node.inputs()[5];
  const Recomputed r = recompute(e, g, in, y, lse);
  const Value ds = grouped(e, r.scores_gradient);
  const Value dq = reshape(matmul(ds, wide(in.k)), in.q.shape()) * in.scale;
  const Value dk = matmul(swap_last(ds), scaled_queries(e, in));
  const Value kept = grouped(e, dropped(e, in, r.weights));
  const Value dv = matmul(swap_last(kept), grouped(e, wide(g)));
  const DType dtype = in.q.dtype();
  return {cast(dq, dtype), cast(dk, dtype), cast(dv, dtype)};
}

Value attention_scores_gradient(const Value& g, const AttentionInputs& in, const Value& y,
                                const Value& lse) {
  return recompute(Extents(in), g, in, y, lse).scores_gradient;
}

}  // namespace tessera
