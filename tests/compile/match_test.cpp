#include <gtest/gtest.h>

#include "compile/function_builder.h"

namespace tessera {
namespace {

using namespace graph;

Value spelled_out_softmax(const Value& x, int axis) {
  const Value e = apply(Op::exp, x - reduce(Op::max, x, {axis}));
  return e / reduce(Op::sum, e, {axis});
}

TEST(Match, FindsASpelledOutSoftmax) {
  const Value x = leaf({4, 8});
  const GraphFunction f = match(function({x}, {spelled_out_softmax(x, 1)}), full_target());
  EXPECT_EQ(f.outputs[0], softmax(x));
}

TEST(Match, LooksThroughDroppedAxes) {
  const Value x = leaf({4, 8});
  const Value top = reshape(reshape(reduce(Op::max, x, {1}), {4}), {4, 1});
  const Value e = apply(Op::exp, x - top);
  const Value total = reshape(reshape(reduce(Op::sum, e, {1}), {4}), {4, 1});
  const GraphFunction f = match(simplify(function({x}, {e / total})), full_target());
  EXPECT_EQ(f.outputs[0], softmax(x));
}

TEST(Match, LeavesOtherThingsAlone) {
  const Value x = leaf({4, 8});
  EXPECT_FALSE(
      computes(match(function({x}, {spelled_out_softmax(x, 1)}), target_with({})), Op::softmax));
  EXPECT_FALSE(
      computes(match(function({x}, {spelled_out_softmax(x, 0)}), full_target()), Op::softmax));
  // Divided by the sum of something else.
  const Value e = apply(Op::exp, x - reduce(Op::max, x, {1}));
  const Value other = e / reduce(Op::sum, apply(Op::exp, x), {1});
  EXPECT_FALSE(computes(match(function({x}, {other}), full_target()), Op::softmax));
  // Square: the sums of rows put on columns.
  const Value s = leaf({4, 4});
  const Value es = apply(Op::exp, s - reduce(Op::max, s, {1}));
  const Value turned = es / expand(reshape(reduce(Op::sum, es, {1}), {1, 4}), {4, 4});
  EXPECT_FALSE(computes(match(function({s}, {turned}), full_target()), Op::softmax));
}

}  // namespace
}  // namespace tessera
