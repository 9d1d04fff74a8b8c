#include <gtest/gtest.h>

#include <set>

#include "compile/function_builder.h"
#include "tessera/autodiff/backward.h"

namespace tessera {
namespace {

using namespace graph;

int losses_in(const GraphFunction& f) {
  std::set<const Node*> found;
  for (const NodePtr& node : topological_order(f.outputs)) {
    if (node->op == Op::cross_entropy) found.insert(node.get());
  }
  return int(found.size());
}

struct Loss {
  Value x = leaf({4, 8}), targets = leaf({4, 1}, DType::i64), scale = leaf({4, 1});
  Value of_rows = cross_entropy(x, targets, full({DType::f32, {4, 1}}, 1))[0];

  Value gradient(const Value& loss) const {
    return backward({{loss}}, {{full(loss.type(), 1)}}, {{x}})[0];
  }
  GraphFunction of(std::vector<Value> outputs) const {
    return function({x, targets, scale}, std::move(outputs));
  }
};

TEST(Join, LossAndGradientAreOneNode) {
  const Loss loss;
  const Value scaled = loss.of_rows * loss.scale;
  const GraphFunction f = loss.of({scaled, loss.gradient(scaled)});
  EXPECT_EQ(losses_in(f), 2);
  const GraphFunction joined = join(f, full_target());
  EXPECT_EQ(losses_in(joined), 1);
  EXPECT_EQ(joined.outputs[0].type(), scaled.type());
  EXPECT_EQ(joined.outputs[1], f.outputs[1]);
  EXPECT_EQ(joined.outputs[0], (Value{joined.outputs[1].node, 0}) * loss.scale);
}

TEST(Join, AGradientThatNeedsTheLossStays) {
  const Loss loss;
  const Value squared = loss.of_rows * loss.of_rows;
  const GraphFunction f = loss.of({squared, loss.gradient(squared)});
  EXPECT_EQ(losses_in(join(f, full_target())), 2);
}

TEST(Join, OtherTargetsStay) {
  const Loss loss;
  const Value others = leaf({4, 1}, DType::i64);
  const Value dx = cross_entropy(loss.x, others, loss.scale)[1];
  const GraphFunction f = function({loss.x, loss.targets, others, loss.scale}, {loss.of_rows, dx});
  EXPECT_EQ(losses_in(join(f, full_target())), 2);
}

// Of two gradients, one has the loss as well.
TEST(Join, EndsWithSeveralGradients) {
  const Loss loss;
  const Value other = loss.of_rows * loss.scale;
  const GraphFunction f =
      loss.of({loss.of_rows, loss.gradient(loss.of_rows * 3.0), loss.gradient(other)});
  EXPECT_EQ(losses_in(f), 3);
  EXPECT_EQ(losses_in(join(f, full_target())), 2);
}

// x (2, 8, 16) and g (2, 8, 24): the gradients of a weight and of its bias.
struct Gradients {
  Value x = leaf({2, 8, 16}), g = leaf({2, 8, 24});
  Value weight = matmul(swap_last(reshape(x, {16, 16})), reshape(g, {16, 24}));
  Value bias = reshape(reduce(Op::sum, g, {0, 1}), {24});

  static GraphFunction joined(std::vector<Value> outputs) {
    return join(function({}, std::move(outputs)), target_with({"matmul", "matmul_sums"}));
  }
};

TEST(JoinSums, AProductTakesTheSumsOfItsSecondFactorAlong) {
  const Gradients of;
  const GraphFunction f = of.joined({of.weight, of.bias});
  const Value made = f.outputs[0];
  ASSERT_EQ(made.node->op, Op::matmul_sums);
  EXPECT_EQ(made.node->inputs(), of.weight.node->inputs());
  EXPECT_EQ(f.outputs[1].shape(), (Shape{24}));
  EXPECT_FALSE(computes(f, Op::matmul));
  EXPECT_FALSE(computes(f, Op::sum));
  const GraphFunction without = join(function({}, {of.weight, of.bias}), target_with({"matmul"}));
  EXPECT_EQ(without.outputs[0], of.weight);
}

TEST(JoinSums, LeavesOtherSumsAndProducts) {
  const Gradients of;
  const auto joins = [&](const std::vector<Value>& outputs) {
    return computes(of.joined(outputs), Op::matmul_sums);
  };
  EXPECT_TRUE(joins({of.weight, of.bias}));
  EXPECT_FALSE(joins({of.weight, reduce(Op::sum, of.g, {0})}));
  EXPECT_FALSE(joins({of.weight, reduce(Op::sum, of.g, {0, 2})}));
  EXPECT_FALSE(joins({of.weight, reduce(Op::sum, of.g, {0, 1, 2})}));
  EXPECT_FALSE(joins({of.weight, reduce(Op::sum, of.g * of.g, {0, 1})}));
  EXPECT_FALSE(joins({of.weight, reduce(Op::sum, reshape(of.g, {16, 4, 6}), {0, 1})}));
  // Two products of one matrix: which of them should?
  const Value other = matmul(leaf({4, 16}), reshape(of.g, {16, 24}));
  EXPECT_FALSE(joins({of.weight, other, of.bias}));
  const Value wide = leaf({16, 24}, DType::f64);
  EXPECT_FALSE(joins({matmul(leaf({4, 16}, DType::f64), wide), reduce(Op::sum, wide, {0})}));
}

// The product's first factor is made of the sums.
TEST(JoinSums, LeavesAProductThatNeedsTheSums) {
  const Gradients of;
  const Value scaled = matmul(reshape(of.x, {16, 16}) + reshape(reduce(Op::sum, of.bias, {0}), {1}),
                              reshape(of.g, {16, 24}));
  EXPECT_FALSE(computes(of.joined({scaled, of.bias}), Op::matmul_sums));
}

// Each of two pairs needs the other's sums.
TEST(JoinSums, LeavesPairsThatNeedEachOther) {
  const Value g = leaf({16, 24}), h = leaf({16, 24});
  const Value of_g = reduce(Op::sum, g, {0}), of_h = reduce(Op::sum, h, {0});
  const Value first =
      matmul(broadcast_to(reshape(slice(of_h, {0, 0}, {1, 16}, {1, 1}), {16}), {4, 16}), g);
  const Value second =
      matmul(broadcast_to(reshape(slice(of_g, {0, 0}, {1, 16}, {1, 1}), {16}), {4, 16}), h);
  EXPECT_FALSE(computes(Gradients::joined({first, second, of_g, of_h}), Op::matmul_sums));
}

// The gradient of a weight that a model holds transposed.
TEST(JoinTurned, AProductThatIsReadTransposed) {
  const Value x = leaf({8, 16}), g = leaf({8, 24});
  const Value weight = matmul(swap_last(x), g);  // (16, 24)
  Target target = target_with({"matmul"});
  const auto turned = [&](const std::vector<Value>& outputs) {
    return join(function({}, outputs), target).outputs[0];
  };
  EXPECT_EQ(turned({swap_last(weight)}), swap_last(weight));
  target.turns_products = true;
  EXPECT_EQ(turned({swap_last(weight)}), matmul(swap_last(g), swap_last(swap_last(x))));
  target.turns_products = false;
  target.row_bytes = 16;
  const Value made = turned({swap_last(weight)});
  ASSERT_EQ(made.node->op, Op::matmul);
  EXPECT_EQ(made.shape(), (Shape{24, 16}));
  EXPECT_EQ(made.node->inputs()[0], swap_last(g));
  EXPECT_EQ(made.node->inputs()[1], swap_last(swap_last(x)));
  // Through reshapes that change nothing in the end.
  const Value there_and_back = reshape(reshape(weight, {1, 16, 24}), {16, 24});
  EXPECT_EQ(turned({swap_last(there_and_back)}).node->op, Op::matmul);
  const Value other = reshape(weight, {24, 16});
  EXPECT_EQ(turned({swap_last(other)}), swap_last(other));
  // Somebody else reads it as it is.
  EXPECT_EQ(turned({swap_last(weight), weight}), swap_last(weight));
}

// The same of a batch.
TEST(JoinTurned, ASumOfProductsThatIsReadTransposed) {
  const Value x = leaf({2, 8, 16}), g = leaf({2, 8, 24});
  const Value products = matmul(swap_last(x), g);  // (2, 16, 24)
  const Value weight = reshape(reduce(Op::sum, products, {0}), {16, 24});
  Target target = target_with({"matmul"});
  target.turns_products = true;
  const auto turned = [&](const std::vector<Value>& outputs) {
    return join(function({}, outputs), target).outputs[0];
  };
  const Value other = matmul(swap_last(g), swap_last(swap_last(x)));
  EXPECT_EQ(turned({swap_last(weight)}), reshape(reduce(Op::sum, other, {0}), {24, 16}));
  // Somebody else reads the products or the sum.
  EXPECT_EQ(turned({swap_last(weight), weight}), swap_last(weight));
  EXPECT_EQ(turned({swap_last(weight), products}), swap_last(weight));
  // Sums over other axes.
  const Value rows = reshape(reduce(Op::sum, matmul(swap_last(x), leaf({2, 8, 2})), {1}), {2, 2});
  EXPECT_EQ(turned({swap_last(rows)}), swap_last(rows));
}

// The gradient of what was split: parts of 2, 3 and 1 columns.
TEST(JoinPads, PartsThatLieSideBySide) {
  const Value a = leaf({4, 2}), b = leaf({4, 3}), c = leaf({4, 1});
  Target target = target_with({});
  const auto joined = [&](const Value& sum) {
    return join(function({}, {sum}), target).outputs[0];
  };
  const auto at = [](const Value& x, int64_t before, double value = 0) {
    return pad(x, {0, before}, {0, 6 - before - x.shape()[1]}, value);
  };
  const Value sum = at(b, 2) + (at(c, 5) + at(a, 0));
  EXPECT_EQ(joined(sum), sum);
  target.orders_outputs = true;
  EXPECT_EQ(joined(sum), concat({a, b, c}, 1));
  EXPECT_EQ(joined(apply(Op::exp, sum)), apply(Op::exp, concat({a, b, c}, 1)));
  // Something is left out, or is there twice.
  for (const Value& other :
       {at(b, 2) + at(a, 0), at(a, 0) + at(b, 1) + at(c, 5), at(a, 0) + at(a, 0) + at(b, 2),
        at(a, 0) + at(b, 2) + at(c, 5, 1), at(a, 0) + at(b, 2) + leaf({4, 6})}) {
    EXPECT_FALSE(computes(function({}, {joined(other)}), Op::concat)) << other.shape();
  }
  const Value corner = pad(leaf({2, 3}), {0, 0}, {2, 3}, 0);
  const Value rest = pad(leaf({2, 3}), {2, 3}, {0, 0}, 0);
  EXPECT_EQ(joined(corner + rest), corner + rest);
}

// Sums of sums: their terms are too many to look at.
TEST(JoinPads, GivesUpInTime) {
  Value sum = pad(leaf({4, 2}), {0, 0}, {0, 4}, 0);
  for (int i = 0; i < 60; ++i) sum = sum + sum;
  Target target = target_with({});
  target.orders_outputs = true;
  EXPECT_EQ(join(function({}, {sum}), target).outputs[0], sum);
}

}  // namespace
}  // namespace tessera
