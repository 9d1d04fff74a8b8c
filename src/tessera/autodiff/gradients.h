// The gradient table: one row per op, next to the op table.
#pragma once

#include <vector>

#include "tessera/graph/node.h"

namespace tessera {

// One application of the chain rule: the node, and the gradient of each of its outputs (empty when
// nothing depends on that output).
struct GradientContext {
  const NodePtr& node;
  const std::vector<Value>& grads;

  const Value& in(int i) const { return node->inputs()[size_t(i)]; }
  Value out(int i = 0) const { return {node, i}; }
  const Value& g(int i = 0) const { return grads[size_t(i)]; }
};

// Gradients of the node's inputs; empty values where there is none.
using GradientRule = std::vector<Value> (*)(const GradientContext&);

struct GradientRow {
  Op op;
  GradientRule rule;  // null: the op passes no gradient on
};

// Null when `op` has no row at all.
const GradientRow* gradient_row(Op op);

}  // namespace tessera
