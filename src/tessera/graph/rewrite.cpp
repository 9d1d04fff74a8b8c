#include "tessera/graph/rewrite.h"

#include <algorithm>

namespace tessera {

std::vector<Value> rewrite(std::span<const Value> outputs, const RewriteRule& rule) {
  std::unordered_map<const Node*, std::vector<Value>> done;
  auto rewritten = [&done](const Value& v) { return done.at(v.node.get())[size_t(v.out)]; };
  // In order of creation, which the order of new nodes then follows: later passes take it for the
  // order the program was written in.
  std::vector<NodePtr> order = topological_order(outputs);
  std::sort(order.begin(), order.end(),
            [](const NodePtr& a, const NodePtr& b) { return a->id < b->id; });
  for (const NodePtr& node : order) {
    const OriginGuard origin(node->scope, node->line);
    std::vector<Value> inputs;
    inputs.reserve(node->inputs().size());
    for (const Value& input : node->inputs()) inputs.push_back(rewritten(input));
    std::vector<Value> result = rule(node, inputs);
    if (result.empty()) {
      const NodePtr same = inputs == node->inputs()
                               ? node
                               : make_node(node->op, std::move(inputs), node->attrs, node->vjp);
      for (size_t i = 0; i < same->types.size(); ++i) result.push_back({same, int(i)});
    }
    TESSERA_ASSERT(result.size() == node->types.size());
    done.emplace(node.get(), std::move(result));
  }
  std::vector<Value> results;
  for (const Value& output : outputs) results.push_back(rewritten(output));
  return results;
}

std::vector<Value> substitute(std::span<const Value> outputs,
                              const std::unordered_map<Value, Value>& map) {
  return rewrite(outputs, [&map](const NodePtr& node, const std::vector<Value>& inputs) {
    std::vector<Value> result;
    bool replaced = false;
    for (size_t i = 0; i < node->types.size(); ++i) {
      const auto it = map.find({node, int(i)});
      replaced |= it != map.end();
    }
    if (!replaced) return result;
    const NodePtr same =
        inputs == node->inputs() ? node : make_node(node->op, inputs, node->attrs, node->vjp);
    for (size_t i = 0; i < node->types.size(); ++i) {
      const auto it = map.find({node, int(i)});
      result.push_back(it == map.end() ? Value{same, int(i)} : it->second);
      TESSERA_ASSERT(result.back().type() == node->types[i]);
    }
    return result;
  });
}

}  // namespace tessera
