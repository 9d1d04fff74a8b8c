#include "tessera/graph/interpret.h"

#include <unordered_map>

#include "tessera/graph/composite.h"
#include "tessera/graph/interpret_ops.h"

namespace tessera {

namespace {

using Arrays = std::vector<Array>;

struct Step {
  NodePtr node;
  std::vector<Value> operands;
};

// What a node reads: its inputs, or for a kernel op the values of its definition.
std::vector<Value> operands_of(const Node& node) {
  return info(node.op).kind == OpKind::kernel ? composite(node) : node.inputs();
}

// Every step the outputs need, operands before users. Unlike topological_order it looks inside
// kernel ops.
std::vector<Step> plan(std::span<const Value> outputs) {
  struct Frame {
    Step step;
    size_t next = 0;
  };
  std::vector<Step> steps;
  std::unordered_map<const Node*, bool> seen;
  std::vector<Frame> stack;
  auto enter = [&](const NodePtr& node) {
    if (seen.emplace(node.get(), true).second) stack.push_back({{node, operands_of(*node)}});
  };
  for (const Value& output : outputs) {
    enter(output.node);
    while (!stack.empty()) {
      Frame& top = stack.back();
      if (top.next == top.step.operands.size()) {
        steps.push_back(std::move(top.step));
        stack.pop_back();
      } else {
        const NodePtr operand = top.step.operands[top.next++].node;
        enter(operand);
      }
    }
  }
  return steps;
}

Arrays evaluate(const Node& node, const Operands& in,
                const std::function<Array(const Node&)>& leaf) {
  if (node.op == Op::leaf) return {leaf_data(node, leaf(node))};
  const bool passes_on = info(node.op).kind == OpKind::kernel || node.op == Op::custom_vjp;
  if (!passes_on) return {evaluate_op(node, in)};
  Arrays outputs;
  for (size_t i = in.size() - node.types.size(); i < in.size(); ++i) outputs.push_back(*in[i]);
  return outputs;
}

}  // namespace

std::vector<Array> interpret(std::span<const Value> outputs,
                             const std::function<Array(const Node& leaf)>& leaf) {
  const std::vector<Step> steps = plan(outputs);
  std::unordered_map<const Node*, size_t> readers;  // that are still to come
  for (const Step& step : steps) {
    for (const Value& operand : step.operands) ++readers[operand.node.get()];
  }
  for (const Value& output : outputs) ++readers[output.node.get()];

  std::unordered_map<const Node*, Arrays> values;
  const auto value = [&](const Value& v) -> Array& {
    return values.at(v.node.get())[size_t(v.out)];
  };
  for (const Step& step : steps) {
    Operands in;
    for (const Value& operand : step.operands) in.push_back(&value(operand));
    values[step.node.get()] = evaluate(*step.node, in, leaf);
    for (const Value& operand : step.operands) {
      if (--readers[operand.node.get()] == 0) values.erase(operand.node.get());
    }
  }
  std::vector<Array> results;
  for (const Value& output : outputs) results.push_back(value(output));
  return results;
}

}  // namespace tessera
