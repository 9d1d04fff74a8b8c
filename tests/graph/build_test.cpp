#include "tessera/graph/build.h"

#include <gtest/gtest.h>

#include "graph/graph_data.h"

namespace tessera {
namespace {

using namespace graph;

Value leaf(const Shape& shape) { return make_leaf({DType::f32, shape}); }

TEST(Build, OperandsBroadcast) {
  EXPECT_EQ((leaf({2, 3}) + leaf({3})).shape(), Shape({2, 3}));
  EXPECT_EQ((leaf({2, 1}) * leaf({1, 3})).shape(), Shape({2, 3}));
  EXPECT_EQ((leaf({}) - leaf({4, 1})).shape(), Shape({4, 1}));
  EXPECT_EQ((leaf({0, 3}) / leaf({1})).shape(), Shape({0, 3}));
  const Value condition = make_leaf({DType::boolean, {2, 1}});
  EXPECT_EQ(where(condition, leaf({3}), leaf({})).shape(), Shape({2, 3}));
}

TEST(Build, BroadcastValuesAreRight) {
  GraphData data;
  const Value column = data.real({2, 1}, {10, 20}), row = data.real({3}, {1, 2, 3});
  const Value y = column + row;
  EXPECT_EQ(data.evaluate(y).real, (std::vector<double>{11, 12, 13, 21, 22, 23}));
  EXPECT_EQ(data.evaluate(row - column).real, (std::vector<double>{-9, -8, -7, -19, -18, -17}));
}

TEST(Build, EqualShapesNeedNoBroadcast) {
  const Value a = leaf({2}), b = leaf({2});
  const Value sum = a + b;
  EXPECT_EQ(sum.node->inputs()[0], a);
  EXPECT_EQ(sum.node->inputs()[1], b);
}

TEST(Build, LiteralsTakeTheOtherDtype) {
  const Value x = make_leaf({DType::f16, {2}});
  EXPECT_EQ((x * 0.1).dtype(), DType::f16);
  EXPECT_EQ((x + 1.0).dtype(), DType::f16);
  EXPECT_EQ(x * 0.1, x * constant(DType::f16, 0.1));
}

TEST(Build, WhatChangesNothingMakesNoNode) {
  const Value x = leaf({2, 3});
  EXPECT_EQ(cast(x, DType::f32), x);
  EXPECT_EQ(reduce(Op::sum, x, {}), x);
  EXPECT_EQ(reshape(x, {2, 3}), x);
  EXPECT_EQ(permute(x, {0, 1}), x);
  EXPECT_EQ(expand(x, {2, 3}), x);
  EXPECT_EQ(broadcast_to(x, {2, 3}), x);
  EXPECT_EQ(sum_to(x, {2, 3}), x);
}

TEST(Build, SwapLastExchangesTheLastTwoAxes) {
  EXPECT_EQ(swap_last(leaf({2, 3, 4})).shape(), Shape({2, 4, 3}));
  EXPECT_EQ(swap_last(swap_last(leaf({3, 4}))).shape(), Shape({3, 4}));
}

TEST(Build, MatmulBroadcastsBatches) {
  EXPECT_EQ(matmul(leaf({5, 2, 3}), leaf({3, 4})).shape(), Shape({5, 2, 4}));
  EXPECT_EQ(matmul(leaf({2, 3}), leaf({6, 5, 3, 4})).shape(), Shape({6, 5, 2, 4}));
  EXPECT_EQ(matmul(leaf({6, 1, 2, 3}), leaf({5, 3, 4})).shape(), Shape({6, 5, 2, 4}));
}

TEST(Build, FullFills) {
  GraphData data;
  EXPECT_EQ(data.evaluate(full({DType::f64, {2, 2}}, 1.5)).real,
            (std::vector<double>{1.5, 1.5, 1.5, 1.5}));
}

TEST(SumTo, UndoesBroadcasting) {
  GraphData data;
  const Value g = data.real({2, 3}, {1, 2, 3, 10, 20, 30});
  const auto sums = [&](const Shape& shape) {
    const Value y = sum_to(g, shape);
    EXPECT_EQ(y.shape(), shape);
    return data.evaluate(y).real;
  };
  EXPECT_EQ(sums({3}), (std::vector<double>{11, 22, 33}));
  EXPECT_EQ(sums({1, 3}), (std::vector<double>{11, 22, 33}));
  EXPECT_EQ(sums({2, 1}), (std::vector<double>{6, 60}));
  EXPECT_EQ(sums({1}), (std::vector<double>{66}));
  EXPECT_EQ(sums({}), (std::vector<double>{66}));
}

TEST(SumTo, KeepsAxesOfExtentOne) {
  const Value g = leaf({4, 1, 3});
  EXPECT_EQ(sum_to(g, {1, 3}).shape(), Shape({1, 3}));
  EXPECT_EQ(sum_to(g, {4, 1, 1}).shape(), Shape({4, 1, 1}));
}

TEST(SumTo, OfNothingIsZero) {
  GraphData data;
  const Value g = data.real({0, 2}, {});
  EXPECT_EQ(data.evaluate(sum_to(g, {2})).real, (std::vector<double>{0, 0}));
}

}  // namespace
}  // namespace tessera
