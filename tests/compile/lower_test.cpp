#include <gtest/gtest.h>

#include "compile/function_builder.h"

namespace tessera {
namespace {

using namespace graph;

TEST(Lower, KeepsKernelOpsTheTargetHas) {
  const Value x = leaf({4, 8});
  EXPECT_EQ(op_of(lower(function({x}, {softmax(x)}), full_target(), true)), Op::softmax);
}

TEST(Lower, ReplacesKernelOpsTheTargetLacksByTheirComposites) {
  const Value x = leaf({4, 8}), gamma = leaf({8}), beta = leaf({8});
  const GraphFunction f =
      function({x, gamma, beta}, {softmax(layer_norm(x, gamma, beta, 1e-5)[0])});
  for (const GraphFunction& lowered :
       {lower(f, target_with({"matmul"}), true), lower(f, full_target(), false)}) {
    EXPECT_FALSE(computes(lowered, Op::softmax));
    EXPECT_FALSE(computes(lowered, Op::layer_norm));
    EXPECT_TRUE(computes(lowered, Op::exp));
    EXPECT_TRUE(computes(lowered, Op::rsqrt));
    EXPECT_EQ(lowered.outputs[0].type(), f.outputs[0].type());
  }
  const GraphFunction half = lower(f, target_with({"softmax"}), true);
  EXPECT_TRUE(computes(half, Op::softmax));
  EXPECT_FALSE(computes(half, Op::layer_norm));
}

TEST(Lower, RemovesMarkersOfAutodiff) {
  const Value x = leaf({3});
  EXPECT_EQ(lower(function({x}, {stop_gradient(x)}), full_target(), true).outputs[0], x);
  Attrs attrs;
  attrs.axis = 1;
  const Value y = apply(Op::exp, x);
  const Value custom{
      make_node(Op::custom_vjp, {x, y}, attrs, std::make_shared<const VjpFunction>()), 0};
  EXPECT_EQ(lower(function({x}, {custom}), full_target(), true).outputs[0], y);
}

TEST(Lower, FoldsOfNothingAreConstants) {
  const Value x = leaf({0, 3});
  const GraphFunction f = lower(function({x}, {reduce(Op::sum, x, {0})}), full_target(), true);
  EXPECT_FALSE(computes(f, Op::sum));
  EXPECT_EQ(f.outputs[0].shape(), (Shape{1, 3}));
  const GraphFunction product =
      lower(function({x}, {reduce(Op::prod, x, {0})}), full_target(), true);
  EXPECT_FALSE(computes(product, Op::prod));
  const Value a = leaf({2, 0}), b = leaf({0, 5});
  EXPECT_FALSE(computes(lower(function({a, b}, {matmul(a, b)}), full_target(), true), Op::matmul));
}

TEST(Lower, APadAroundNothingIsAConstant) {
  const Value x = leaf({3, 0}, DType::i32);
  const GraphFunction f = lower(function({x}, {pad(x, {0, 1}, {0, 1}, 7)}), full_target(), true);
  EXPECT_FALSE(computes(f, Op::pad));
  EXPECT_EQ(f.outputs[0].type(), (Type{DType::i32, {3, 2}}));
  EXPECT_TRUE(
      computes(lower(function({x}, {pad(leaf({1}), {0}, {1}, 7)}), full_target(), true), Op::pad));
}

TEST(Lower, KernelsOverNothingGoThroughPlainOps) {
  const Value x = leaf({0, 8});
  EXPECT_FALSE(computes(lower(function({x}, {softmax(x)}), full_target(), true), Op::softmax));
}

}  // namespace
}  // namespace tessera
