// What random programs have found, as small as it gets.
#include <gtest/gtest.h>

#include "compile/function_builder.h"
#include "tessera/conformance/reference.h"

namespace tessera {
namespace {

using namespace graph;

TEST(RandomFinds, AnAssignOfNoElementsCompiles) {
  const Value x = leaf({0, 3}), y = leaf({2});
  const Program program = compile_graph(
      function({x, y}, {y + 1.0}, {{0, apply(Op::exp, x)}, {1, apply(Op::neg, y)}}), full_target());
  EXPECT_EQ(program.outputs, 1);
}

// Every axis is folded, so the padded value is one per row, in the only dimension there is.
TEST(RandomFinds, APaddedValueBesideAFoldOfEverything) {
  const Tensor x = random_tensor({7}, 1), scale = random_tensor({1}, 2, DType::f32, 1, 2);
  const Value joined = concat({scale.value(), random_tensor({0}, 3).value()}, 0);
  const Tensor y(reduce(Op::sum, x.value(), {0}) * joined);
  EXPECT_NEAR(y.item(), reference(y)[0], 1e-5);
  const Tensor z(reduce(Op::sum, x.value() * joined, {0}) / apply(Op::abs, joined));
  EXPECT_NEAR(z.item(), reference(z)[0], 1e-5);
}

}  // namespace
}  // namespace tessera
