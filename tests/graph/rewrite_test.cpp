#include <gtest/gtest.h>

#include "tessera/graph/build.h"
#include "tessera/graph/rewrite.h"

namespace tessera {
namespace {

using namespace graph;

Value leaf() { return make_leaf({DType::f32, {4}}); }

TEST(Substitute, RebuildsWhatUsesAReplacedValueAndKeepsTheRest) {
  const Value x = leaf(), y = leaf(), other = leaf();
  const Value kept = apply(Op::exp, y);
  const Value out = apply(Op::tanh, x) + kept;
  const std::vector<Value> outputs = {out, kept};
  const std::vector<Value> result = substitute(outputs, {{x, other}});
  EXPECT_EQ(result[0], apply(Op::tanh, other) + kept);
  EXPECT_EQ(result[1], kept);
}

TEST(Substitute, AReplacedValueHidesItsHistory) {
  // The value's own inputs are replaced too, which must not matter.
  const Value x = leaf(), other = leaf(), given = leaf();
  Value y = x;
  for (int i = 0; i < 100; ++i) y = apply(Op::exp, y);
  const std::vector<Value> outputs = {y * 2.0};
  EXPECT_EQ(substitute(outputs, {{x, other}, {y, given}})[0], given * 2.0);
}

TEST(Substitute, OneOutputOfSeveral) {
  const Value x = leaf(), other = leaf(), given = leaf();
  const NodePtr sorted = make_node(Op::sort, {x});
  const Value values{sorted, 0}, indices{sorted, 1};
  const std::vector<Value> outputs = {values, indices};
  const std::vector<Value> result = substitute(outputs, {{x, other}, {values, given}});
  EXPECT_EQ(result[0], given);
  EXPECT_EQ(result[1], (Value{make_node(Op::sort, {other}), 1}));
}

}  // namespace
}  // namespace tessera
