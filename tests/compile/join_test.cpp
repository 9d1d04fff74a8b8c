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
  const GraphFunction joined = join(f);
  EXPECT_EQ(losses_in(joined), 1);
  EXPECT_EQ(joined.outputs[0].type(), scaled.type());
  EXPECT_EQ(joined.outputs[1], f.outputs[1]);
  EXPECT_EQ(joined.outputs[0], (Value{joined.outputs[1].node, 0}) * loss.scale);
}

TEST(Join, AGradientThatNeedsTheLossStays) {
  const Loss loss;
  const Value squared = loss.of_rows * loss.of_rows;
  const GraphFunction f = loss.of({squared, loss.gradient(squared)});
  EXPECT_EQ(losses_in(join(f)), 2);
}

TEST(Join, OtherTargetsStay) {
  const Loss loss;
  const Value others = leaf({4, 1}, DType::i64);
  const Value dx = cross_entropy(loss.x, others, loss.scale)[1];
  const GraphFunction f = function({loss.x, loss.targets, others, loss.scale}, {loss.of_rows, dx});
  EXPECT_EQ(losses_in(join(f)), 2);
}

// Of two gradients, one has the loss as well.
TEST(Join, EndsWithSeveralGradients) {
  const Loss loss;
  const Value other = loss.of_rows * loss.scale;
  const GraphFunction f =
      loss.of({loss.of_rows, loss.gradient(loss.of_rows * 3.0), loss.gradient(other)});
  EXPECT_EQ(losses_in(f), 3);
  EXPECT_EQ(losses_in(join(f)), 2);
}

}  // namespace
}  // namespace tessera
