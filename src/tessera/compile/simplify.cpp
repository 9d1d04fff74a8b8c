#include <cmath>
#include <limits>
#include <optional>

#include "tessera/compile/passes.h"
#include "tessera/compile/rewrite_function.h"
#include "tessera/graph/build.h"

namespace tessera {

std::vector<Value> computed_values(const GraphFunction& function) {
  std::vector<Value> values = function.outputs;
  for (const auto& assign : function.assigns) values.push_back(assign.value);
  return values;
}

GraphFunction rewrite_function(const GraphFunction& function, const RewriteRule& rule) {
  const std::vector<Value> values = rewrite(computed_values(function), rule);
  GraphFunction result = function;
  const size_t n = function.outputs.size();
  for (size_t i = 0; i < n; ++i) result.outputs[i] = values[i];
  for (size_t i = 0; i < function.assigns.size(); ++i) result.assigns[i].value = values[n + i];
  return result;
}

namespace {

using namespace graph;
using Inputs = std::vector<Value>;
using Simplified = std::optional<Value>;

// The literal behind a value: a constant, or one that was only reshaped and expanded.
const Node* literal(const Value& v) {
  const Node* node = v.node.get();
  while (node->op == Op::expand || node->op == Op::reshape) node = node->inputs()[0].node.get();
  return node->op == Op::constant ? node : nullptr;
}

bool is_literal(const Value& v, double value) {
  const Node* node = literal(v);
  return node != nullptr && node->attrs.bits == scalar_bits(node->attrs.dtype, value);
}

double as_double(const Value& v) { return scalar_as_double(v.dtype(), literal(v)->attrs.bits); }

// Powers by products and roots: exact, or within 2 ulp where two of them follow on each other, and
// the same as pow for zeros, infinities and NaN. pow takes the root of -0 and of -inf for that of 0
// and of inf.
Value square_root(const Value& x) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const Value root = apply(Op::sqrt, x + 0.0);
  return where(apply(Op::eq, x, constant(x.dtype(), -kInfinity)), constant(x.dtype(), kInfinity),
               root);
}
struct PowerRow {
  double exponent;
  Value (*power)(const Value& x);
};
constexpr PowerRow kPowers[] = {
    {1, [](const Value& x) { return x; }},
    {2, [](const Value& x) { return x * x; }},
    {3, [](const Value& x) { return x * x * x; }},
    {0.5, square_root},
    {-1, [](const Value& x) { return apply(Op::reciprocal, x); }},
    // Not the other way round: the square of a great x overflows before its inverse vanishes.
    {-2, [](const Value& x) { return apply(Op::reciprocal, x) * apply(Op::reciprocal, x); }},
};

Simplified simplify_pow(const Value& x, const Value& exponent) {
  for (const PowerRow& row : kPowers) {
    if (is_literal(exponent, row.exponent)) return row.power(x);
  }
  return {};
}

// Arithmetic whose f64 result, rounded once to the type, is the type's own result.
Simplified fold(const NodePtr& node, const Inputs& in) {
  const DType dtype = node->types[0].dtype;
  if (dtype != DType::f32 && dtype != DType::f64 && dtype != DType::i64) return {};
  for (const Value& v : in) {
    if (literal(v) == nullptr || v.dtype() != dtype) return {};
  }
  auto arg = [&](size_t i) { return literal(in[i])->attrs.bits; };
  if (dtype == DType::i64) {
    const auto a = arg(0), b = in.size() > 1 ? arg(1) : 0;
    switch (node->op) {
      case Op::neg: return constant_int(dtype, int64_t(0 - a));
      case Op::add: return constant_int(dtype, int64_t(a + b));
      case Op::sub: return constant_int(dtype, int64_t(a - b));
      case Op::mul: return constant_int(dtype, int64_t(a * b));
      default: return {};
    }
  }
  const double a = scalar_as_double(dtype, arg(0));
  const double b = in.size() > 1 ? scalar_as_double(dtype, arg(1)) : 0;
  switch (node->op) {
    case Op::neg: return constant(dtype, -a);
    case Op::add: return constant(dtype, a + b);
    case Op::sub: return constant(dtype, a - b);
    case Op::mul: return constant(dtype, a * b);
    case Op::div: return constant(dtype, a / b);
    default: return {};
  }
}

Simplified simplify_scalar(const NodePtr& node, const Inputs& in) {
  switch (node->op) {
    case Op::mul:
      if (is_literal(in[1], 1)) return in[0];
      if (is_literal(in[0], 1)) return in[1];
      break;
    case Op::div:
      if (is_literal(in[1], 1)) return in[0];
      break;
    case Op::sub:
      if (is_literal(in[1], 0.0)) return in[0];  // x − (+0) is x, also for x = −0
      break;
    case Op::add:
      // x + (−0) is x for every x; x + (+0) turns −0 into +0, so only integers allow it.
      for (const size_t i : {0, 1}) {
        const bool neutral =
            is_float(in[0].dtype()) ? is_literal(in[i], -0.0) : is_literal(in[i], 0.0);
        if (neutral) return in[1 - i];
      }
      break;
    case Op::neg:
      if (in[0].node->op == Op::neg) return in[0].node->inputs()[0];
      break;
    case Op::eq:
      if (literal(in[0]) != nullptr && literal(in[1]) != nullptr && is_float(in[0].dtype())) {
        return full(node->types[0], as_double(in[0]) == as_double(in[1]));
      }
      break;
    case Op::pow:
      if (const Simplified power = simplify_pow(in[0], in[1])) return power;
      break;
    case Op::where:
      if (in[1] == in[2]) return in[1];
      if (is_literal(in[0], 1)) return in[1];
      if (is_literal(in[0], 0)) return in[2];
      break;
    default: break;
  }
  if (const Simplified folded = fold(node, in)) return broadcast_to(*folded, node->types[0].shape);
  return {};
}

// A float type that holds every value of another.
bool widens(DType from, DType to) {
  return is_float(from) && is_float(to) && promote(from, to) == to && from != to;
}

Simplified simplify_cast(const NodePtr& node, const Inputs& in) {
  const Value& x = in[0];
  if (x.dtype() == node->attrs.dtype) return x;
  if (x.node->op != Op::cast) return {};
  const Value& inner = x.node->inputs()[0];
  // There and back through a wider type changes nothing.
  if (widens(inner.dtype(), x.dtype())) return cast(inner, node->attrs.dtype);
  return {};
}

Simplified simplify_permute(const NodePtr& node, const Inputs& in) {
  if (in[0].node->op != Op::permute) return permute(in[0], node->attrs.a);
  const Dims &outer = node->attrs.a, &inner = in[0].node->attrs.a;
  Dims both = outer;
  for (int i = 0; i < outer.rank(); ++i) both[i] = inner[int(outer[i])];
  return permute(in[0].node->inputs()[0], both);
}

Simplified simplify_node(const NodePtr& node, const Inputs& in) {
  switch (node->op) {
    case Op::cast: return simplify_cast(node, in);
    case Op::permute: return simplify_permute(node, in);
    case Op::reshape:
      return reshape(in[0].node->op == Op::reshape ? in[0].node->inputs()[0] : in[0],
                     node->attrs.a);
    case Op::expand:
      return expand(in[0].node->op == Op::expand ? in[0].node->inputs()[0] : in[0], node->attrs.a);
    case Op::slice:
      if (node->types[0] == in[0].type()) {
        bool whole = true;
        for (int i = 0; i < node->attrs.a.rank(); ++i) {
          whole &= in[0].shape()[i] <= 1 || node->attrs.c[i] == 1;
        }
        if (whole) return in[0];
      }
      return {};
    case Op::pad:
      if (node->types[0] == in[0].type()) return in[0];
      return {};
    case Op::concat:
      if (in.size() == 1) return in[0];
      return {};
    case Op::sum:
    case Op::prod:
    case Op::max:
    case Op::min:
      if (node->types[0] == in[0].type()) return in[0];  // folds extents of 1
      return {};
    default: return is_scalar_fn(node->op) ? simplify_scalar(node, in) : Simplified{};
  }
}

}  // namespace

GraphFunction simplify(const GraphFunction& function) {
  return rewrite_function(function, [](const NodePtr& node, const Inputs& in) -> Inputs {
    // Rules look at the node as rewritten: its own inputs may be gone.
    if (const Simplified value = simplify_node(node, in)) return {*value};
    return {};
  });
}

}  // namespace tessera
