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

const std::vector<std::string> kLinear = {"matmul", "linear", "linear_slope"};

// x (2, 8, 16) times w (16, 24) plus a bias.
struct Sum {
  Value x = leaf({2, 8, 16}), w = leaf({16, 24}), bias = leaf({24});
  Value product = matmul(x, broadcast_to(w, {2, 16, 24}));
  Value sum = product + broadcast_to(bias, {2, 8, 24});

  GraphFunction matched(std::vector<Value> outputs) const {
    return match(function({x, w, bias}, std::move(outputs)), target_with(kLinear));
  }
};

TEST(MatchLinear, TakesBiasAndActivationAlong) {
  const Sum s;
  const GraphFunction f = s.matched({apply(Op::gelu_tanh, s.sum), s.sum});
  ASSERT_EQ(f.outputs[0].node->op, Op::reshape);
  const Value y = f.outputs[0].node->inputs()[0], sum = f.outputs[1].node->inputs()[0];
  EXPECT_EQ(y.node->op, Op::linear);
  EXPECT_EQ(y.node, sum.node);
  EXPECT_EQ(y.out, 0);
  EXPECT_EQ(sum.out, 1);
  EXPECT_EQ(y.shape(), (Shape{16, 24}));
  EXPECT_FALSE(computes(f, Op::matmul));
  EXPECT_FALSE(computes(match(function({s.x, s.w, s.bias}, {s.sum}), full_target()), Op::linear));
}

Value spelled_out_relu(const Value& x) {
  return where(apply(Op::le, x, full(x.type(), 0)), full(x.type(), 0), x);
}

TEST(MatchLinear, KnowsFromTheReluWhatItsGradientNeeds) {
  const Sum s;
  const Value g = leaf(s.sum.shape()), zero = full(s.sum.type(), 0);
  const Value slope = where(apply(Op::le, s.sum, zero), zero, g);
  const GraphFunction f = s.matched({spelled_out_relu(s.sum), slope});
  ASSERT_EQ(f.outputs[0].node->op, Op::reshape);
  const Value y = f.outputs[0].node->inputs()[0];
  EXPECT_EQ(y.node->op, Op::linear);
  EXPECT_EQ(y.node->attrs.axis, 2);
  EXPECT_EQ(y.out, 0);
  EXPECT_EQ(f.outputs[1], where(apply(Op::le, f.outputs[0], zero), zero, g));
}

TEST(MatchLinear, LeavesASumOfWhichMoreIsAskedThanItsRelu) {
  const Sum s;
  const Value zero = full(s.sum.type(), 0), y = spelled_out_relu(s.sum);
  EXPECT_TRUE(computes(s.matched({y}), Op::linear));
  EXPECT_FALSE(computes(s.matched({y, s.sum}), Op::linear));
  EXPECT_FALSE(computes(s.matched({y, s.sum * s.sum}), Op::linear));
  // Above one instead of zero, another value there, and no relu at all.
  const Value one = full(s.sum.type(), 1), mask = apply(Op::le, s.sum, zero);
  EXPECT_FALSE(computes(s.matched({y, apply(Op::le, s.sum, one)}), Op::linear));
  EXPECT_FALSE(computes(s.matched({where(mask, one, s.sum)}), Op::linear));
  EXPECT_FALSE(computes(s.matched({where(apply(Op::le, one, zero), zero, s.sum)}), Op::linear));
  EXPECT_FALSE(computes(s.matched({mask}), Op::linear));
}

TEST(MatchLinear, LeavesWhatElseNeedsTheProduct) {
  const Sum s;
  EXPECT_FALSE(computes(s.matched({apply(Op::gelu_tanh, s.sum), s.product}), Op::linear));
  // A bias alone pays where no elementwise kernel takes it along.
  EXPECT_TRUE(computes(s.matched({s.sum}), Op::linear));
  EXPECT_FALSE(computes(s.matched({s.sum * s.sum}), Op::linear));
}

TEST(MatchLinear, MultipliesByTheSlopeAndSumsColumns) {
  const Sum s;
  const Value g = leaf({2, 8, 40}), v = leaf({40, 24});
  const Value slope = apply(Op::gelu_tanh_slope, leaf({2, 8, 24}));
  const Value dx = matmul(g, broadcast_to(v, {2, 40, 24})) * slope;
  const GraphFunction f = s.matched({dx, reduce(Op::sum, dx, {0, 1})});
  const Value y = f.outputs[0].node->inputs()[0], sums = f.outputs[1].node->inputs()[0];
  EXPECT_EQ(y.node->op, Op::linear_slope);
  EXPECT_EQ(y.node, sums.node);
  EXPECT_EQ(sums.out, 1);
  // Sums of anything but columns stay.
  EXPECT_TRUE(computes(s.matched({reduce(Op::sum, dx, {0})}), Op::sum));
}

TEST(MatchLinear, LeavesTypesThatTheKernelDoesNotTake) {
  Target target = target_with(kLinear);
  target.wide_kernels = {"linear", "linear_slope"};
  for (const DType dtype : {DType::f32, DType::bf16, DType::f64}) {
    const Value x = leaf({8, 16}, dtype), w = leaf({16, 24}, dtype), bias = leaf({24}, dtype);
    const Value slope = apply(Op::gelu_tanh_slope, leaf({8, 24}, dtype));
    const Value y = apply(Op::gelu_tanh, matmul(x, w) + broadcast_to(bias, {8, 24}));
    const GraphFunction f = match(function({x, w, bias}, {y, matmul(x, w * 2.0) * slope}), target);
    EXPECT_EQ(computes(f, Op::linear), dtype == DType::f32);
    EXPECT_EQ(computes(f, Op::linear_slope), dtype == DType::f32);
  }
}

TEST(MatchLinear, MakesOneProductOfABatchWithOneMatrix) {
  const Sum s;
  const GraphFunction f = s.matched({s.product});
  ASSERT_EQ(f.outputs[0].node->op, Op::reshape);
  EXPECT_EQ(f.outputs[0].node->inputs()[0], matmul(reshape(s.x, {16, 16}), s.w));
  // Turned for a gradient, and the gradient of the matrix itself.
  const Value g = leaf({2, 8, 24});
  const Value dx = matmul(g, swap_last(broadcast_to(s.w, {2, 16, 24})));
  EXPECT_EQ(s.matched({dx}).outputs[0].node->inputs()[0],
            matmul(reshape(g, {16, 24}), swap_last(s.w)));
  const Value dw = reduce(Op::sum, matmul(swap_last(s.x), g), {0});
  EXPECT_EQ(s.matched({dw}).outputs[0].node->inputs()[0],
            matmul(swap_last(reshape(s.x, {16, 16})), reshape(g, {16, 24})));
}

TEST(MatchLinear, LeavesBatchesOfDifferentMatrices) {
  const Sum s;
  // One matrix in memory, another for each of the batch.
  const Value many = reshape(leaf({32, 24}), {2, 16, 24}), product = matmul(s.x, many);
  EXPECT_EQ(s.matched({product}).outputs[0], product);
  const Value dw = reduce(Op::sum, matmul(s.x, many), {1});
  EXPECT_EQ(s.matched({dw}).outputs[0], dw);
}

TEST(MatchLinear, AddsAProductToAMatrix) {
  const Sum s;
  const auto matched = [&](Value output, std::vector<std::string> kernels) {
    return match(function({s.x, s.w, s.bias}, {output}), target_with(std::move(kernels)));
  };
  const std::vector<std::string> adding = {"matmul", "linear", "linear_slope", "matmul_add"};
  const Value c = leaf({2, 8, 24}), sum = c + s.product;
  const GraphFunction f = matched(sum, adding);
  EXPECT_EQ(f.outputs[0].shape(), sum.shape());
  const Value added = f.outputs[0].node->inputs()[0];
  EXPECT_EQ(added.node->op, Op::matmul_add);
  EXPECT_EQ(added.node->inputs()[2], reshape(c, {16, 24}));
  EXPECT_FALSE(computes(f, Op::matmul));
  EXPECT_FALSE(computes(matched(sum, kLinear), Op::matmul_add));
  // Where an elementwise kernel adds it anyway, and a bias has a kernel of its own.
  EXPECT_FALSE(computes(matched(sum * sum, adding), Op::matmul_add));
  EXPECT_FALSE(computes(matched(s.sum, adding), Op::matmul_add));
}

TEST(MatchLinear, LeavesOtherShapesAlone) {
  const Sum s;
  // A sum without axes, of a product of one element and a vector of one.
  const Value one = matmul(leaf({1, 4}), leaf({4, 1})), single = leaf({1});
  const Value total = reshape(one, {}) + reshape(single, {});
  EXPECT_EQ(s.matched({total}).outputs[0], total);
  const Value scaled = reshape(one, {}) * apply(Op::gelu_tanh_slope, reshape(single, {}));
  EXPECT_EQ(s.matched({scaled}).outputs[0], scaled);
  // Columns that are no longer the product's.
  const Value slope = apply(Op::gelu_tanh_slope, leaf({8, 24}));
  const Value dx = matmul(leaf({8, 40}), leaf({40, 24})) * slope;
  EXPECT_TRUE(computes(s.matched({reduce(Op::sum, reshape(dx, {8, 4, 6}), {0, 1})}), Op::sum));
  // The activation of a sum that was repeated.
  const Value sum = reshape(matmul(leaf({1, 16}), s.w) + reshape(s.bias, {1, 24}), {1, 24});
  const Value wide = apply(Op::gelu_tanh, expand(sum, {8, 24}));
  EXPECT_EQ(s.matched({wide, apply(Op::gelu_tanh, sum)}).outputs[0].shape(), (Shape{8, 24}));
}

}  // namespace
}  // namespace tessera
