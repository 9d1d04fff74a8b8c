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

TEST(Lower, KeepsKernelOpsOfTypesThatTheTargetTakes) {
  Target target = target_with({"matmul", "linear"});
  target.wide_kernels = {"linear"};
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
    const Value a = leaf({4, 8}, dtype), b = leaf({8, 3}, dtype), bias = leaf({3}, dtype);
    const Value y = {make_node(Op::linear, {a, b, bias}), 0};
    const GraphFunction f = lower(function({a, b, bias}, {y}), target, true);
    EXPECT_EQ(computes(f, Op::linear), !is_half(dtype));
    EXPECT_EQ(computes(f, Op::matmul), is_half(dtype));
    EXPECT_EQ(f.outputs[0].type(), y.type());
  }
}

Target long_row_target() {
  Target target = target_with({"layer_norm_backward"});
  target.long_row_columns = 16;
  target.long_row_bytes = 256;
  return target;
}

TEST(Lower, KeepsWhatTheTargetHasForLongRows) {
  const Target target = long_row_target();
  const auto keeps = [&](const Shape& shape, DType dtype) {
    const Value x = leaf(shape, dtype), gamma = leaf({shape.back()}, dtype);
    const GraphFunction f = lower(
        function({x, gamma}, {softmax(x), layer_norm(x, gamma, gamma, 1e-5)[0]}), target, true);
    EXPECT_EQ(computes(f, Op::softmax), computes(f, Op::layer_norm));
    return computes(f, Op::softmax);
  };
  EXPECT_TRUE(keeps({4, 17}, DType::f32));
  EXPECT_TRUE(keeps({63}, DType::f32));
  EXPECT_TRUE(keeps({2, 3, 128}, DType::bf16));
  EXPECT_FALSE(keeps({4, 16}, DType::f32));
  EXPECT_FALSE(keeps({4, 65}, DType::f32));
  EXPECT_FALSE(keeps({4, 64}, DType::f32)) << "accesses of 16 bytes";
  EXPECT_FALSE(keeps({4, 17}, DType::f64));
  EXPECT_FALSE(keeps({0, 17}, DType::f32));
  const Value x = leaf({4, 17});
  EXPECT_FALSE(computes(lower(function({x}, {softmax(x)}), target, false), Op::softmax));
  EXPECT_FALSE(computes(lower(function({x}, {softmax(x)}), target_with({}), true), Op::softmax));
}

TEST(Lower, LongRowsAreGeneratedWithTheirNeighbours) {
  const Value x = leaf({4, 17}), turned = leaf({17, 4}), gamma = leaf({17});
  const auto keeps = [&](const Value& y) {
    return computes(lower(function({x, turned, gamma}, {y}), long_row_target(), true), Op::softmax);
  };
  EXPECT_FALSE(keeps(softmax(x * 2.0)));
  EXPECT_FALSE(keeps(softmax(reshape(x * 2.0, {2, 2, 17}))));
  EXPECT_FALSE(keeps(softmax(swap_last(turned))));
  EXPECT_FALSE(keeps(softmax(expand(leaf({1, 17}), {4, 17}))));
  EXPECT_FALSE(keeps(softmax(slice(leaf({4, 20}), {0, 1}, {4, 17}, {1, 1}))));
  EXPECT_FALSE(keeps(softmax(slice(leaf({8, 17}), {0, 0}, {4, 17}, {2, 1}))));
  EXPECT_FALSE(keeps(softmax(x) * 2.0));
  EXPECT_FALSE(keeps(reduce(Op::sum, reshape(softmax(x), {2, 2, 17}), {2})));
  EXPECT_TRUE(keeps(softmax(slice(leaf({5, 17}), {1, 0}, {4, 17}, {1, 1}))));
  EXPECT_TRUE(keeps(softmax(stop_gradient(reshape(x, {2, 2, 17})))));
  EXPECT_TRUE(keeps(reshape(softmax(x), {2, 2, 17})));
  EXPECT_TRUE(keeps(softmax(matmul(leaf({4, 3}), leaf({3, 17})))));

  const std::vector<Value> y = layer_norm(x, gamma, gamma, 1e-5);
  const Value dx = {make_node(Op::layer_norm_backward, {leaf({4, 17}), x, gamma, y[1], y[2]}), 0};
  const GraphFunction f = lower(function({x, gamma}, {y[0], dx}), long_row_target(), true);
  EXPECT_TRUE(computes(f, Op::layer_norm)) << "its gradient is a kernel, too";
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
