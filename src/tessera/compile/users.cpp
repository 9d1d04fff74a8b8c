#include "tessera/compile/users.h"

#include "tessera/compile/rewrite_function.h"

namespace tessera {

Users::Users(const GraphFunction& function) {
  std::vector<const Node*> stack;
  std::unordered_set<const Node*> seen;
  for (const Value& value : computed_values(function)) {
    results_.insert(value.node.get());
    stack.push_back(value.node.get());
  }
  while (!stack.empty()) {
    const Node* node = stack.back();
    stack.pop_back();
    if (!seen.insert(node).second) continue;
    for (const Value& input : node->inputs()) {
      users_[input.node.get()].push_back(node);
      stack.push_back(input.node.get());
    }
  }
}

std::span<const Node* const> Users::of(const Node& node) const {
  const auto found = users_.find(&node);
  if (found == users_.end()) return {};
  return found->second;
}

}  // namespace tessera
