#include "tessera/train/debug_nan.h"

#include <algorithm>
#include <unordered_set>

#include "tessera/graph/node.h"
#include "tessera/tensor/ops.h"

namespace tessera {

namespace {

int64_t count_nonfinite(const Value& value) {
  if (!is_float(value.dtype()) || numel(value.shape()) == 0) return 0;
  const Tensor bad = logical_not(isfinite(Tensor(value)));
  return int64_t(sum(cast(bad, DType::i64)).item());
}

}  // namespace

std::optional<std::string> find_nonfinite(std::span<const Tensor> roots) {
  std::vector<Value> values;
  for (const Tensor& root : roots) values.push_back(root.value());
  std::unordered_set<Value> bad;
  for (const NodePtr& node : topological_order(values)) {
    const bool spoilt = std::ranges::any_of(
        node->inputs(), [&](const Value& input) { return bad.contains(input); });
    for (int out = 0; out < int(node->types.size()); ++out) {
      const Value value{node, out};
      const int64_t count = count_nonfinite(value);
      if (count == 0) continue;
      bad.insert(value);
      // An infinity that was written down, as masks have it, is meant.
      if (spoilt || node->op == Op::constant) continue;
      const std::string what = node->op == Op::leaf
                                   ? std::string("a parameter or an input holds")
                                   : cat(name(node->op), " of finite operands gives");
      return cat(what, " ", count, " of ", numel(value.shape()), " elements that are not finite, ",
                 value.type(), origin(node->scope, node->line));
    }
  }
  return std::nullopt;
}

}  // namespace tessera
