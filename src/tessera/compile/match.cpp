#include <algorithm>
#include <optional>

#include "tessera/compile/passes.h"
#include "tessera/compile/rewrite_function.h"
#include "tessera/compile/users.h"
#include "tessera/graph/build.h"

namespace tessera {

namespace {

using Inputs = std::vector<Value>;

// Looks through reshapes and expands: how a reduced value comes back to its row.
Value through_moves(Value v) {
  while (v.node->op == Op::expand || v.node->op == Op::reshape) v = v.node->inputs()[0];
  return v;
}

Value through_reshapes(Value v) {
  while (v.node->op == Op::reshape) v = v.node->inputs()[0];
  return v;
}

bool is_zero(const Value& v) {
  const Value literal = through_moves(v);
  return literal.node->op == Op::constant && literal.node->attrs.bits == 0;
}

// x <= 0
bool is_mask(const Node& node, const Value& x) {
  return node.op == Op::le && node.inputs()[0] == x && is_zero(node.inputs()[1]);
}

// where(x <= 0, 0, x): relu, as tensor/elementwise.cpp spells it.
bool is_relu(Op op, const Inputs& in, const Value& x) {
  return op == Op::where && is_mask(*in[0].node, x) && is_zero(in[1]) && in[2] == x;
}

// A fold of `x` along its last axis alone, broadcast back to x's shape.
bool is_row_fold(const Value& v, Op op, const Value& x) {
  const Value fold = through_moves(v);
  const int last = x.shape().rank() - 1;
  if (last < 0 || fold.node->op != op || fold.node->attrs.a != Dims{last} ||
      fold.node->inputs()[0] != x) {
    return false;
  }
  // The moves in between must put each row's value back on its own row: same shape but for the last
  // axis, which is what expanding the fold itself gives.
  return v == graph::expand(fold, x.shape());
}

// exp(x − max(x)) / sum(exp(x − max(x))) over the last axis.
std::optional<Value> match_softmax(Op op, const Inputs& in) {
  if (op != Op::div || in[0].node->op != Op::exp) return {};
  const Value& e = in[0];
  const Value& shifted = e.node->inputs()[0];
  if (shifted.node->op != Op::sub || !is_row_fold(in[1], Op::sum, e)) return {};
  const Value& x = shifted.node->inputs()[0];
  if (!is_row_fold(shifted.node->inputs()[1], Op::max, x)) return {};
  return graph::softmax(x);
}

struct Pattern {
  Op result;
  std::optional<Value> (*match)(Op op, const Inputs& inputs);
};

constexpr Pattern kPatterns[] = {
    {Op::softmax, match_softmax},
};

// Products of a batch with one matrix become products of matrices, and take along what stands
// beside them: a bias, gelu_tanh or relu of the sum, and in gradients the slope of gelu_tanh. What
// a node turns into depends on who else reads its value.
class LinearMatcher {
 public:
  LinearMatcher(const GraphFunction& function, const Target& target)
      : target_(target), users_(function) {}

  Inputs match(const NodePtr& node, const Inputs& in) const {
    switch (node->op) {
      case Op::add:
        if (Inputs sum = match_sum(node, in); !sum.empty()) return sum;
        return match_accumulation(*node, in);
      case Op::gelu_tanh: return match_activation(in[0]);
      case Op::mul: return match_slope(*node, in);
      case Op::where: return match_relu(in);
      case Op::matmul: return match_product(*node, in);
      case Op::sum:
        if (Inputs sums = match_column_sums(*node, in[0]); !sums.empty()) return sums;
        return match_batch_sum(*node, in[0]);
      default: return {};
    }
  }

 private:
  // a (M, K) and b (K, N).
  struct Factors {
    Value a, b;
  };

  // Of a product of matrices that nothing else reads, whatever axes its rows were given.
  std::optional<Factors> factors(Value original, Value product) const {
    if (product.shape().rank() == 0) return {};
    for (; original.node->op == Op::reshape; original = original.node->inputs()[0]) {
      if (!is_read_once(original)) return {};
    }
    if (original.node->op != Op::matmul || !is_read_once(original)) return {};
    const int64_t columns = product.shape().back();
    product = through_reshapes(product);
    const bool fits = product.node->op == Op::matmul && product.shape().rank() == 2 &&
                      product.shape().back() == columns && numel(product.shape()) > 0 &&
                      product.dtype() != DType::f64 && is_float(product.dtype()) &&
                      target_.has(info(Op::linear).kernel, product.dtype());
    if (!fits) return {};
    return Factors{product.node->inputs()[0], product.node->inputs()[1]};
  }

  // The one matrix that b repeats for a whole batch.
  static std::optional<Value> repeated_matrix(const Value& b) {
    const int rank = b.shape().rank();
    if (b.node->op == Op::permute && b == graph::swap_last(b.node->inputs()[0])) {
      const auto matrix = repeated_matrix(b.node->inputs()[0]);
      return matrix ? std::optional(graph::swap_last(*matrix)) : std::nullopt;
    }
    const Value matrix = through_moves(b);
    if (rank < 3 || matrix.shape() != Shape{b.shape()[rank - 2], b.shape()[rank - 1]}) return {};
    if (b != graph::broadcast_to(matrix, b.shape())) return {};
    return matrix;
  }

  static Value as_matrix(const Value& x) {
    const int64_t columns = x.shape().back();
    return graph::reshape(x, {numel(x.shape()) / std::max<int64_t>(columns, 1), columns});
  }

  // One tall product instead of a batch of them.
  static Inputs match_product(const Node& node, const Inputs& in) {
    if (numel(node.types[0].shape) == 0 || in[0].shape().back() == 0) return {};
    const auto matrix = repeated_matrix(in[1]);
    if (!matrix) return {};
    return {graph::reshape(graph::matmul(as_matrix(in[0]), *matrix), node.types[0].shape)};
  }

  // The sum over a batch of xᵀ g is one product, too.
  Inputs match_batch_sum(const Node& node, const Value& x) const {
    const int rank = x.shape().rank();
    if (rank < 3 || x.node->op != Op::matmul || !is_read_once(node.inputs()[0])) return {};
    Dims axes;
    for (int i = 0; i < rank - 2; ++i) axes.push_back(i);
    const Value& left = x.node->inputs()[0];
    if (node.attrs.a != axes || left.node->op != Op::permute || numel(x.shape()) == 0) return {};
    if (left.shape().back() == 0) return {};
    const Value& straight = left.node->inputs()[0];
    if (left != graph::swap_last(straight)) return {};
    const Value product =
        graph::matmul(graph::swap_last(as_matrix(straight)), as_matrix(x.node->inputs()[1]));
    return {graph::reshape(product, node.types[0].shape)};
  }

  bool is_read_once(const Value& value) const {
    return !users_.is_result(*value.node) && users_.of(*value.node).size() == 1;
  }
  bool has_user(const Node& node, Op op) const {
    return std::ranges::any_of(users_.of(node), [op](const Node* user) { return user->op == op; });
  }
  // A bias alone pays where no elementwise kernel would add it on the way.
  bool feeds_kernels(const Node& node) const {
    return std::ranges::none_of(users_.of(node), [](const Node* user) {
      return info(user->op).kind == OpKind::scalar || info(user->op).kind == OpKind::reduce;
    });
  }

  // Whether relu, and whether its argument is above zero, is all that anyone asks of a value. Both
  // are known from the relu: the sum itself need not be kept for the gradient.
  bool is_only_rectified(const NodePtr& node) const {
    if (users_.is_result(*node)) return false;
    const Value x = {node, 0};
    bool activates = false;
    for (const Node* user : users_.of(*node)) {
      const bool rectifies = is_relu(user->op, user->inputs(), x);
      if (!rectifies && !is_mask(*user, x)) return false;
      activates = activates || rectifies;
    }
    return activates;
  }

  // 1 gelu_tanh, 2 relu; 0 where the sum is used as it is.
  int64_t activation_of(const NodePtr& node) const {
    if (has_user(*node, Op::gelu_tanh)) return 1;
    return is_only_rectified(node) ? 2 : 0;
  }

  Inputs match_sum(const NodePtr& node, const Inputs& in) const {
    const Shape& shape = node->types[0].shape;
    if (shape.rank() == 0) return {};
    for (const size_t k : {size_t{0}, size_t{1}}) {
      const Value bias = through_moves(in[1 - k]);
      if (bias.shape() != Shape{shape.back()}) continue;
      if (in[1 - k] != graph::broadcast_to(bias, shape)) continue;
      const auto product = factors(node->inputs()[k], in[k]);
      if (!product) continue;
      Attrs attrs;
      attrs.axis = activation_of(node);
      if (attrs.axis == 0 && !feeds_kernels(*node)) return {};
      const NodePtr linear = make_node(Op::linear, {product->a, product->b, bias}, attrs);
      return {graph::reshape({linear, attrs.axis == 1 ? 1 : 0}, shape)};
    }
    return {};
  }

  // A product that is added to a matrix, where no elementwise kernel would add it on the way.
  Inputs match_accumulation(const Node& node, const Inputs& in) const {
    if (!target_.has(info(Op::matmul_add).kernel)) return {};
    if (node.types[0].shape.rank() == 0 || !feeds_kernels(node)) return {};
    for (const size_t k : {size_t{0}, size_t{1}}) {
      const auto product = factors(node.inputs()[k], in[k]);
      if (!product) continue;
      const Shape matrix = {product->a.shape()[0], product->b.shape()[1]};
      const NodePtr made =
          make_node(Op::matmul_add, {product->a, product->b, graph::reshape(in[1 - k], matrix)});
      return {graph::reshape({made, 0}, node.types[0].shape)};
    }
    return {};
  }

  static Inputs match_activation(const Value& x) {
    const Value sum = through_reshapes(x);
    if (sum.node->op != Op::linear || sum.out != 1) return {};
    return {graph::reshape({sum.node, 0}, x.shape())};
  }

  static Inputs match_relu(const Inputs& in) {
    const Value y = through_reshapes(in[2]);
    if (y.node->op != Op::linear || y.out != 0 || y.node->attrs.axis != 2) return {};
    return is_relu(Op::where, in, in[2]) ? Inputs{in[2]} : Inputs{};
  }

  Inputs match_slope(const Node& node, const Inputs& in) const {
    for (const size_t k : {size_t{0}, size_t{1}}) {
      if (in[1 - k].node->op != Op::gelu_tanh_slope) continue;
      const auto product = factors(node.inputs()[k], in[k]);
      if (!product) continue;
      const Value& x = in[1 - k].node->inputs()[0];
      const Shape matrix = {product->a.shape()[0], product->b.shape()[1]};
      const NodePtr made =
          make_node(Op::linear_slope, {product->a, product->b, graph::reshape(x, matrix)});
      return {graph::reshape({made, 0}, node.types[0].shape)};
    }
    return {};
  }

  static Inputs match_column_sums(const Node& node, const Value& x) {
    const Value y = through_reshapes(x);
    if (y.node->op != Op::linear_slope || y.out != 0) return {};
    const int leading = x.shape().rank() - 1;
    if (leading < 0 || x.shape().back() != y.shape().back()) return {};
    Dims axes;
    for (int i = 0; i < leading; ++i) axes.push_back(i);
    if (node.attrs.a != axes) return {};
    return {graph::reshape({y.node, 1}, node.types[0].shape)};
  }

  const Target& target_;
  const Users users_;
};

}  // namespace

GraphFunction match(const GraphFunction& function, const Target& target) {
  std::optional<LinearMatcher> linear;
  if (target.has(info(Op::linear).kernel)) linear.emplace(function, target);
  return rewrite_function(function, [&](const NodePtr& node, const Inputs& in) -> Inputs {
    if (linear) {
      if (Inputs matched = linear->match(node, in); !matched.empty()) return matched;
    }
    for (const Pattern& pattern : kPatterns) {
      if (!target.has(info(pattern.result).kernel)) continue;
      if (const auto value = pattern.match(node->op, in)) return {*value};
    }
    return {};
  });
}

}  // namespace tessera
