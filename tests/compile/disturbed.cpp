#include "compile/disturbed.h"

#include <algorithm>
#include <cmath>

#include "tessera/conformance/reference.h"
#include "tessera/graph/composite.h"
#include "tessera/graph/interpret_ops.h"
#include "tessera/graph/interpret_scalar.h"

namespace tessera {

namespace {

// A number of few digits comes from operations that round nothing; disturbing it would break ties
// that are ties in every evaluation.
bool is_exact(DType dtype, double value) {
  return round_to(is_half(dtype) ? dtype : DType::f32, value) == value;
}

bool all_exact(const Array& array) {
  return std::all_of(array.real.begin(), array.real.end(),
                     [&](double x) { return is_exact(array.type.dtype, x); });
}

// Small multiples of 1/64: whatever the order, their products and sums round nowhere on the way.
bool all_coarse(const Operands& in) {
  const auto is_coarse = [](double x) { return std::fabs(x) <= 64 && 64 * x == std::rint(64 * x); };
  return std::all_of(in.begin(), in.end(), [&](const Array* array) {
    return std::all_of(array->real.begin(), array->real.end(), is_coarse);
  });
}

// Ops whose terms can cancel: the error is relative to the terms, not to the result.
bool adds_up(Op op) { return op == Op::sum || op == Op::matmul || op == Op::scatter_add; }

// Ops that hand on numbers as they are.
bool passes_on(const Node& node) {
  switch (info(node.op).kind) {
    case OpKind::move:
    case OpKind::assemble:
    case OpKind::index:
    case OpKind::marker: return true;
    default: break;
  }
  const Op op = node.op;
  return op == Op::max || op == Op::min || op == Op::where || op == Op::maximum ||
         op == Op::minimum || op == Op::neg || op == Op::abs || op == Op::dynamic_update_slice ||
         op == Op::scatter || op == Op::constant || op == Op::iota || op == Op::uniform;
}

}  // namespace

void Disturbed::set_leaf(const Value& leaf, const Array& data) {
  known_[leaf.node.get()] = {leaf.node, {leaf_data(*leaf.node, data)}};
}

const Array& Disturbed::at(const Value& value) {
  const auto stop = [this](const Node& node) { return known_.contains(&node); };
  for (const NodePtr& node : topological_order(std::span(&value, 1), stop)) {
    if (!known_.contains(node.get())) evaluate(node);
  }
  return known_.at(value.node.get()).outputs[size_t(value.out)];
}

void Disturbed::evaluate(const NodePtr& node) {
  std::vector<Array> outputs;
  if (info(node->op).kind == OpKind::kernel) {
    for (const Value& output : composite(*node)) outputs.push_back(at(output));
  } else if (node->op == Op::custom_vjp) {
    for (size_t i = size_t(node->attrs.axis); i < node->inputs().size(); ++i) {
      outputs.push_back(at(node->inputs()[i]));
    }
  } else {
    outputs.push_back(evaluate_disturbed(*node));
  }
  known_[node.get()] = {node, std::move(outputs)};
}

Array Disturbed::evaluate_disturbed(const Node& node) {
  Operands in;
  for (const Value& input : node.inputs()) {
    in.push_back(&known_.at(input.node.get()).outputs[size_t(input.out)]);
  }
  Array result = evaluate_op(node, in);
  if (sample_ == 0) return result;
  if (sample_ == 1) {
    for (double& x : result.real) x = round_to(result.type.dtype, x);
    return result;
  }
  if (!adds_up(node.op)) {
    const bool rounds = node.op == Op::cast && in[0]->real != result.real && !in[0]->real.empty();
    if (rounds || (!passes_on(node) && !all_exact(result))) disturb(result);
    return result;
  }
  if (all_exact(result) && all_coarse(in)) return result;
  std::vector<Array> copies;
  for (const Array* operand : in) copies.push_back(*operand);
  for (size_t i = 0; i < copies.size(); ++i) {
    disturb(copies[i]);
    in[i] = &copies[i];
  }
  result = evaluate_op(node, in);
  disturb(result);
  return result;
}

void Disturbed::disturb(Array& array) {
  const DType dtype = array.type.dtype;
  const double unit = (is_half(dtype) ? 4 : 64) * std::ldexp(1.0, -digits(dtype));
  for (double& x : array.real) x *= 1 + unit * (2 * random_.unit() - 1);
}

}  // namespace tessera
