// Rebuilding a graph with some values replaced.
#pragma once

#include <functional>
#include <span>
#include <unordered_map>
#include <vector>

#include "tessera/graph/node.h"

namespace tessera {

// The outputs with every value of `map` replaced; types must agree. Parts that do not change keep
// their nodes.
std::vector<Value> substitute(std::span<const Value> outputs,
                              const std::unordered_map<Value, Value>& map);

// Rewrites bottom-up: for each node, `rule(node, inputs)` gets the node and its rewritten inputs
// and returns its replacement outputs, or nothing to rebuild the node on the new inputs.
using RewriteRule =
    std::function<std::vector<Value>(const NodePtr& node, const std::vector<Value>& inputs)>;
std::vector<Value> rewrite(std::span<const Value> outputs, const RewriteRule& rule);

}  // namespace tessera
