#include "tessera/autodiff/backward.h"

#include <unordered_map>
#include <unordered_set>

#include "tessera/autodiff/gradients.h"
#include "tessera/graph/build.h"
#include "tessera/graph/composite.h"
#include "tessera/graph/rewrite.h"

namespace tessera {

namespace {

using namespace graph;

// The composite of a kernel op, differentiated. Its inputs are first replaced by fresh leaves: an
// input that is computed from another one, or that equals a value inside the composite, must not be
// differentiated through here.
std::vector<Value> composite_gradients(const GradientContext& c) {
  std::vector<Value> leaves;
  std::unordered_map<Value, Value> back;
  for (const Value& input : c.node->inputs()) {
    leaves.push_back(make_leaf(input.type()));
    back.emplace(leaves.back(), input);
  }
  const NodePtr proxy = make_node(c.node->op, leaves, c.node->attrs);
  std::vector<Value> outputs, grads;
  const std::vector<Value> all = composite(*proxy);
  for (size_t i = 0; i < all.size(); ++i) {
    if (!c.grads[i]) continue;
    outputs.push_back(all[i]);
    grads.push_back(c.grads[i]);
  }
  std::vector<Value> result = backward(outputs, grads, leaves);
  for (Value& v : result) {
    if (v) v = substitute(std::span(&v, 1), back)[0];
  }
  return result;
}

std::vector<Value> gradients_of_inputs(const GradientContext& c) {
  const GradientRow* row = gradient_row(c.node->op);
  TESSERA_ASSERT(row != nullptr);
  std::vector<Value> result;
  if (row->rule != nullptr) result = row->rule(c);
  if (result.empty() && info(c.node->op).kind == OpKind::kernel) result = composite_gradients(c);
  return result;
}

// Nodes through which a gradient can reach one of the inputs.
std::unordered_set<const Node*> nodes_on_paths(const std::vector<NodePtr>& order,
                                               std::span<const Value> inputs) {
  std::unordered_set<const Node*> on_path;
  for (const Value& input : inputs) on_path.insert(input.node.get());
  for (const NodePtr& node : order) {
    const GradientRow* row = gradient_row(node->op);
    const bool passes = row->rule != nullptr || info(node->op).kind == OpKind::kernel;
    if (!passes) continue;
    for (const Value& input : node->inputs()) {
      if (is_float(input.dtype()) && on_path.contains(input.node.get())) on_path.insert(node.get());
    }
  }
  return on_path;
}

}  // namespace

std::vector<Value> backward(std::span<const Value> outputs, std::span<const Value> output_grads,
                            std::span<const Value> inputs) {
  TESSERA_ASSERT(outputs.size() == output_grads.size());
  const std::vector<NodePtr> order = topological_order(outputs);
  const auto on_path = nodes_on_paths(order, inputs);

  std::unordered_map<const Node*, std::vector<Value>> grads;
  auto accumulate = [&grads](const Value& v, const Value& g) {
    TESSERA_ASSERT(v.type() == g.type());
    std::vector<Value>& slots = grads[v.node.get()];
    slots.resize(v.node->types.size());
    Value& slot = slots[size_t(v.out)];
    slot = slot ? slot + g : g;
  };
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (is_float(outputs[i].dtype())) accumulate(outputs[i], output_grads[i]);
  }

  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    const NodePtr& node = *it;
    const auto found = grads.find(node.get());
    if (found == grads.end() || !on_path.contains(node.get())) continue;
    bool needed = false;
    for (const Value& input : node->inputs()) needed |= on_path.contains(input.node.get());
    if (!needed) continue;
    const OriginGuard origin(node->scope, node->line);
    const std::vector<Value> output_gradients = found->second;  // `grads` may rehash below
    const std::vector<Value> result = gradients_of_inputs({node, output_gradients});
    for (size_t i = 0; i < result.size(); ++i) {
      const Value& input = node->inputs()[i];
      if (result[i] && is_float(input.dtype()) && on_path.contains(input.node.get())) {
        accumulate(input, result[i]);
      }
    }
  }

  std::vector<Value> results;
  for (const Value& input : inputs) {
    const auto it = grads.find(input.node.get());
    results.push_back(it == grads.end() ? Value{} : it->second[size_t(input.out)]);
  }
  return results;
}

}  // namespace tessera
