#include <algorithm>
#include <optional>

#include "tessera/compile/passes.h"
#include "tessera/compile/rewrite_function.h"

namespace tessera {

namespace {

struct Pair {
  NodePtr loss, gradient;  // whose loss and whose gradient is used
};

bool depends_on(const Value& value, const NodePtr& node) {
  const std::vector<NodePtr> order = topological_order(std::span(&value, 1));
  return std::find(order.begin(), order.end(), node) != order.end();
}

// Two of the same logits and targets: one whose loss is used, and one for its gradient. They differ
// in g alone, on which the loss does not depend.
std::optional<Pair> find_pair(const GraphFunction& function) {
  const std::vector<Value> roots = computed_values(function);
  const std::vector<NodePtr> order = topological_order(roots);
  std::vector<NodePtr> losses, gradients;
  const auto use = [&](const Value& value) {
    if (value.node->op != Op::cross_entropy) return;
    std::vector<NodePtr>& used = value.out == 0 ? losses : gradients;
    if (std::find(used.begin(), used.end(), value.node) == used.end()) used.push_back(value.node);
  };
  for (const Value& root : roots) use(root);
  for (const NodePtr& node : order) {
    for (const Value& input : node->inputs()) use(input);
  }
  for (const NodePtr& loss : losses) {
    if (std::find(gradients.begin(), gradients.end(), loss) != gradients.end()) continue;
    for (const NodePtr& gradient : gradients) {
      const bool same =
          loss->inputs()[0] == gradient->inputs()[0] && loss->inputs()[1] == gradient->inputs()[1];
      if (same && !depends_on({gradient, 1}, loss)) return Pair{loss, gradient};
    }
  }
  return {};
}

}  // namespace

GraphFunction join(GraphFunction function) {
  while (const std::optional<Pair> pair = find_pair(function)) {
    function = rewrite_function(
        function, [&](const NodePtr& node, const std::vector<Value>&) -> std::vector<Value> {
          if (node != pair->loss) return {};
          return {{pair->gradient, 0}, {node, 1}};
        });
  }
  return function;
}

}  // namespace tessera
