#include <optional>

#include "tessera/compile/passes.h"
#include "tessera/compile/rewrite_function.h"
#include "tessera/graph/build.h"

namespace tessera {

namespace {

using Inputs = std::vector<Value>;

// Looks through reshapes and expands: how a reduced value comes back to its row.
Value through_moves(Value v) {
  while (v.node->op == Op::expand || v.node->op == Op::reshape) v = v.node->inputs()[0];
  return v;
}

// A fold of `x` along its last axis alone, broadcast back to x's shape.
bool is_row_fold(const Value& v, Op op, const Value& x) {
  const Value fold = through_moves(v);
  const int last = x.shape().rank() - 1;
  if (last < 0 || fold.node->op != op || fold.node->attrs.a != Dims{last} ||
      fold.node->inputs()[0] != x) {
    return false;
  }
  // The moves in between must put each row's value back on its own row: same shape but for the last
  // axis, which is what expanding the fold itself gives.
  return v == graph::expand(fold, x.shape());
}

// exp(x − max(x)) / sum(exp(x − max(x))) over the last axis.
std::optional<Value> match_softmax(Op op, const Inputs& in) {
  if (op != Op::div || in[0].node->op != Op::exp) return {};
  const Value& e = in[0];
  const Value& shifted = e.node->inputs()[0];
  if (shifted.node->op != Op::sub || !is_row_fold(in[1], Op::sum, e)) return {};
  const Value& x = shifted.node->inputs()[0];
  if (!is_row_fold(shifted.node->inputs()[1], Op::max, x)) return {};
  return graph::softmax(x);
}

struct Pattern {
  Op result;
  std::optional<Value> (*match)(Op op, const Inputs& inputs);
};

constexpr Pattern kPatterns[] = {
    {Op::softmax, match_softmax},
};

}  // namespace

GraphFunction match(const GraphFunction& function, const Target& target) {
  return rewrite_function(function, [&](const NodePtr& node, const Inputs& in) -> Inputs {
    for (const Pattern& pattern : kPatterns) {
      if (!target.has(info(pattern.result).kernel)) continue;
      if (const auto value = pattern.match(node->op, in)) return {*value};
    }
    return {};
  });
}

}  // namespace tessera
