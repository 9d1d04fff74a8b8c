#include "tessera/graph/rewrite.h"

#include <algorithm>

namespace tessera {

namespace {

// With `stop`: nodes whose replacement the rule gives without their inputs, which are not visited.
std::vector<Value> rewrite_until(std::span<const Value> outputs, const RewriteRule& rule,
                                 const std::function<bool(const Node&)>& stop) {
  std::unordered_map<const Node*, std::vector<Value>> done;
  auto rewritten = [&done](const Value& v) { return done.at(v.node.get())[size_t(v.out)]; };
  // In order of creation, which the order of new nodes then follows: later passes take it for the
  // order the program was written in.
  std::vector<NodePtr> order = topological_order(outputs, stop);
  std::sort(order.begin(), order.end(),
            [](const NodePtr& a, const NodePtr& b) { return a->id < b->id; });
  for (const NodePtr& node : order) {
    const OriginGuard origin(node->scope, node->line);
    std::vector<Value> inputs;
    if (!stop(*node)) {
      inputs.reserve(node->inputs().size());
      for (const Value& input : node->inputs()) inputs.push_back(rewritten(input));
    }
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

}  // namespace

std::vector<Value> rewrite(std::span<const Value> outputs, const RewriteRule& rule) {
  return rewrite_until(outputs, rule, [](const Node&) { return false; });
}

std::vector<Value> substitute(std::span<const Value> outputs,
                              const std::unordered_map<Value, Value>& map) {
  const auto replacement = [&map](const Value& v) {
    const auto it = map.find(v);
    if (it == map.end()) return Value{};
    TESSERA_ASSERT(it->second.type() == v.type());
    return it->second;
  };
  std::unordered_map<const Node*, size_t> replaced;  // how many outputs
  for (const auto& [from, to] : map) ++replaced[from.node.get()];
  const auto is_gone = [&](const Node& node) {
    const auto it = replaced.find(&node);
    return it != replaced.end() && it->second == node.types.size();
  };
  const RewriteRule rule = [&](const NodePtr& node, const std::vector<Value>& inputs) {
    std::vector<Value> result;
    if (!replaced.contains(node.get())) return result;
    NodePtr same = node;  // has the outputs that stay
    if (!is_gone(*node) && inputs != node->inputs()) {
      same = make_node(node->op, inputs, node->attrs, node->vjp);
    }
    for (size_t i = 0; i < node->types.size(); ++i) {
      const Value given = replacement({node, int(i)});
      result.push_back(given ? given : Value{same, int(i)});
    }
    return result;
  };
  // What leads only to replaced values is not looked at: the history of a value may be long.
  return rewrite_until(outputs, rule, is_gone);
}

}  // namespace tessera
