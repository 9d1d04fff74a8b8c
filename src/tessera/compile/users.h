// Who reads what in a function.
#pragma once

#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "tessera/compile/program.h"

namespace tessera {

class Users {
 public:
  explicit Users(const GraphFunction& function);

  // The nodes that read some output of `node`, one for each time they do.
  std::span<const Node* const> of(const Node& node) const;

  bool is_result(const Node& node) const { return results_.contains(&node); }  // read from outside

 private:
  std::unordered_map<const Node*, std::vector<const Node*>> users_;
  std::unordered_set<const Node*> results_;
};

}  // namespace tessera
