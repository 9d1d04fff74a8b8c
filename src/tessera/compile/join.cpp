#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "tessera/compile/passes.h"
#include "tessera/compile/rewrite_function.h"
#include "tessera/graph/build.h"

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

Value through_reshapes(Value v) {
  while (v.node->op == Op::reshape) v = v.node->inputs()[0];
  return v;
}

// Who reads a value as rows of its last axis: products, as their second factor, and sums of
// columns.
struct Readers {
  std::vector<NodePtr> products, sums;
};

bool sums_columns(const Node& node) {
  if (node.op != Op::sum) return false;
  Dims leading;
  for (int i = 0; i < node.inputs()[0].shape().rank() - 1; ++i) leading.push_back(i);
  return !leading.empty() && node.attrs.a == leading;
}

bool multiplies_matrices(const Node& node) {
  const Type& type = node.types[0];
  return node.op == Op::matmul && type.shape.rank() == 2 && numel(type.shape) > 0 &&
         is_float(type.dtype) && type.dtype != DType::f64;
}

std::unordered_map<Value, Readers> readers(const std::vector<NodePtr>& order) {
  std::unordered_map<Value, Readers> result;
  for (const NodePtr& node : order) {
    const bool is_product = multiplies_matrices(*node);
    if (!is_product && !sums_columns(*node)) continue;
    const Value& rows = node->inputs()[is_product ? 1 : 0];
    const Value source = through_reshapes(rows);
    if (source.shape().rank() == 0 || source.shape().back() != rows.shape().back()) continue;
    Readers& found = result[source];
    (is_product ? found.products : found.sums).push_back(node);
  }
  return result;
}

// What a product, and what a sum, is replaced by. A pair is left alone where it depends on another,
// so that no two of them wait for each other.
using Replaced = std::unordered_map<const Node*, Value>;

Replaced joined_sums(const std::vector<NodePtr>& order) {
  std::unordered_map<const Node*, NodePtr> sum_of;  // products'
  std::unordered_set<const Node*> depends;          // on one of a pair, or is one
  for (const auto& [source, found] : readers(order)) {
    if (found.products.size() != 1 || found.sums.size() != 1) continue;
    sum_of[found.products[0].get()] = found.sums[0];
    depends.insert({found.products[0].get(), found.sums[0].get()});
  }
  Replaced result;
  for (const NodePtr& node : order) {
    const std::vector<Value>& in = node->inputs();
    const bool is_tied = std::any_of(
        in.begin(), in.end(), [&](const Value& v) { return depends.contains(v.node.get()); });
    if (is_tied) depends.insert(node.get());
    const auto sum = sum_of.find(node.get());
    if (is_tied || sum == sum_of.end()) continue;
    const OriginGuard origin(node->scope, node->line);
    const NodePtr made = make_node(Op::matmul_sums, {in[0], in[1]});
    result[node.get()] = {made, 0};
    result[sum->second.get()] = graph::reshape({made, 1}, sum->second->types[0].shape);
  }
  return result;
}

GraphFunction join_sums(const GraphFunction& function) {
  const std::vector<Value> roots = computed_values(function);
  const Replaced replaced = joined_sums(topological_order(roots));
  if (replaced.empty()) return function;
  return rewrite_function(
      function, [&](const NodePtr& node, const std::vector<Value>&) -> std::vector<Value> {
        const auto found = replaced.find(node.get());
        return found == replaced.end() ? std::vector<Value>{} : std::vector{found->second};
      });
}

bool swaps_two(const Node& node) { return node.op == Op::permute && node.attrs.a == Dims{1, 0}; }

// The sum over a batch of products.
bool sums_batch(const Node& node) {
  if (node.op != Op::sum || node.inputs()[0].node->op != Op::matmul) return false;
  Dims axes;
  for (int i = 0; i < node.inputs()[0].shape().rank() - 2; ++i) axes.push_back(i);
  return axes.rank() > 0 && node.attrs.a == axes;
}

Value turned(const Value& product) {
  const std::span<const Value> factors = product.node->inputs();
  return graph::matmul(graph::swap_last(factors[1]), graph::swap_last(factors[0]));
}

// A product that is only read transposed becomes the product of the transposes: what it writes lies
// as its reader wants it, in rows as long as those of the other factor. So does the sum over a
// batch.
GraphFunction turn_products(const GraphFunction& function) {
  const std::vector<Value> roots = computed_values(function);
  std::unordered_map<const Node*, int> uses;
  for (const Value& root : roots) ++uses[root.node.get()];
  for (const NodePtr& node : topological_order(roots)) {
    for (const Value& input : node->inputs()) ++uses[input.node.get()];
  }
  // What is read by one node alone, through reshapes by one alone.
  const auto source = [&](Value v) {
    while (v.node->op == Op::reshape && uses[v.node.get()] == 1) v = v.node->inputs()[0];
    return v;
  };
  return rewrite_function(
      function, [&](const NodePtr& node, const std::vector<Value>& inputs) -> std::vector<Value> {
        if (!swaps_two(*node)) return {};
        const Value before = source(node->inputs()[0]);
        if (uses[before.node.get()] != 1) return {};
        const Value now = through_reshapes(inputs[0]);
        if (before.node->op == Op::matmul && before.shape() == node->inputs()[0].shape()) {
          return {turned(now)};
        }
        if (!sums_batch(*before.node)) return {};
        const Value product = before.node->inputs()[0];
        const int rank = product.shape().rank();
        const Shape matrix = {product.shape()[rank - 2], product.shape()[rank - 1]};
        if (uses[product.node.get()] != 1 || node->inputs()[0].shape() != matrix) return {};
        const Value sum = graph::reduce(Op::sum, turned(now.node->inputs()[0]), now.node->attrs.a);
        return {graph::reshape(sum, node->types[0].shape)};
      });
}

// The only axis along which a value is padded with zeros.
std::optional<int> padded_axis(const Value& v) {
  const Node& node = *v.node;
  if (node.op != Op::pad || scalar_as_double(v.dtype(), node.attrs.bits) != 0) return {};
  std::optional<int> axis;
  for (int i = 0; i < v.shape().rank(); ++i) {
    if (node.attrs.a[i] == 0 && node.attrs.b[i] == 0) continue;
    if (axis) return {};
    axis = i;
  }
  return axis;
}

constexpr size_t kMostParts = 64;

// The terms of a sum, where all are pads, and few.
std::vector<Value> padded_terms(const Value& first, const Value& second) {
  std::vector<Value> open = {first, second}, terms;
  while (!open.empty() && open.size() + terms.size() <= kMostParts) {
    const Value v = open.back();
    open.pop_back();
    if (v.node->op == Op::add) {
      for (const Value& input : v.node->inputs()) open.push_back(input);
    } else if (padded_axis(v)) {
      terms.push_back(v);
    } else {
      return {};
    }
  }
  return open.empty() ? terms : std::vector<Value>{};
}

// What the terms of `whole` are without their zeros, side by side; nothing where they overlap or
// leave something out.
std::optional<Value> joined_pads(std::vector<Value> terms, const Type& whole) {
  if (terms.empty()) return {};
  const int axis = *padded_axis(terms[0]);
  const auto start = [&](const Value& term) { return term.node->attrs.a[axis]; };
  std::ranges::sort(terms, {}, start);
  int64_t end = 0;
  std::vector<Value> parts;
  for (const Value& term : terms) {
    if (term.type() != whole || padded_axis(term) != axis || start(term) != end) return {};
    parts.push_back(term.node->inputs()[0]);
    end += parts.back().shape()[axis];
  }
  if (end != whole.shape[axis]) return {};
  return graph::concat(parts, axis);
}

// A sum of values that are zero wherever the others are not becomes their concat, as is the
// gradient of what was split; a negative zero then stays one.
GraphFunction join_pads(const GraphFunction& function) {
  return rewrite_function(
      function, [](const NodePtr& node, const std::vector<Value>& inputs) -> std::vector<Value> {
        if (node->op != Op::add) return {};
        const auto joined = joined_pads(padded_terms(inputs[0], inputs[1]), node->types[0]);
        return joined ? std::vector{*joined} : std::vector<Value>{};
      });
}

}  // namespace

GraphFunction join(GraphFunction function, const Target& target) {
  if (target.has(info(Op::matmul_sums).kernel)) function = join_sums(function);
  const bool turns = target.turns_products || target.row_bytes > 0;
  if (turns) function = turn_products(function);
  if (target.orders_outputs) function = join_pads(function);
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
