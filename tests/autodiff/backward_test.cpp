// Reverse mode on graphs, evaluated by the reference interpreter.
#include "tessera/autodiff/backward.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "graph/graph_data.h"
#include "support/expect_error.h"
#include "tessera/autodiff/gradients.h"
#include "tessera/graph/build.h"

namespace tessera {
namespace {

using namespace graph;
using Reals = std::vector<double>;
using Values = std::vector<Value>;

Value sum_all(const Value& x) {
  Dims axes;
  for (int i = 0; i < x.shape().rank(); ++i) axes.push_back(i);
  return reduce(Op::sum, x, axes);
}

// ∂Σy/∂x.
Value gradient(const Value& y, const Value& x) {
  const Value ones = full(y.type(), 1);
  return backward(std::span(&y, 1), std::span(&ones, 1), std::span(&x, 1))[0];
}

bool uses(const Value& value, Op op) {
  for (const NodePtr& node : topological_order(std::span(&value, 1))) {
    if (node->op == op) return true;
  }
  return false;
}

TEST(GradientTable, EveryOpHasOneRow) {
  for (int i = 0; i < kOpCount; ++i) {
    const GradientRow* row = gradient_row(Op(i));
    ASSERT_NE(row, nullptr) << name(Op(i));
    EXPECT_EQ(row->op, Op(i));
    EXPECT_TRUE(has_gradient_row(Op(i)));
  }
}

TEST(Backward, SharedSubexpressionsAddUp) {
  GraphData data;
  const Value x = data.real({2}, {2, 3});
  const Value square = x * x;
  // A diamond whose sides meet again: d/dx (x² · x² + x²) = 4x³ + 2x.
  EXPECT_EQ(data.evaluate(gradient(square * square + square, x)).real, (Reals{36, 114}));
}

TEST(Backward, ProductsWithZeros) {
  GraphData data;
  const Value x = data.real({3, 3}, {2, 3, 4, 2, 0, 4, 0, 0, 4});
  EXPECT_EQ(data.evaluate(gradient(reduce(Op::prod, x, {1}), x)).real,
            (Reals{12, 8, 6, 0, 8, 0, 0, 0, 0}));
  // Second order: d²(abc)/da db = c.
  const Value first = gradient(reduce(Op::prod, x, {1}), x);
  EXPECT_EQ(data.evaluate(gradient(first, x)).real, (Reals{7, 6, 5, 4, 6, 2, 4, 4, 0}));
  // Two axes at once, of extents 1 and 3.
  const Value y = data.real({3, 2, 1}, {2, 3, 4, 5, 0, 7});
  EXPECT_EQ(data.evaluate(gradient(reduce(Op::prod, y, {0, 2}), y)).real,
            (Reals{0, 35, 0, 21, 8, 15}));
  EXPECT_EQ(data.evaluate(gradient(cumprod(x, 1), x)).real,
            (Reals{1 + 3 + 12, 2 + 8, 6, 1, 2 + 8, 0, 1, 0, 0}));
}

TEST(Backward, OnlyTheLastOfAScatterGetsAGradient) {
  GraphData data;
  const Value x = data.real({3}, {1, 2, 3}), source = data.real({4}, {5, 6, 7, 8});
  const Value index = data.integer({4}, {2, 0, 2, 0});
  const Value y = scatter(x, index, source, 0) * data.real({3}, {10, 20, 30});
  EXPECT_EQ(data.evaluate(gradient(y, x)).real, (Reals{0, 20, 0}));
  EXPECT_EQ(data.evaluate(gradient(y, source)).real, (Reals{0, 0, 30, 10}));
}

TEST(Backward, WindowsAddUpWhereTheyOverlap) {
  GraphData data;
  const Value x = data.real({5}, {1, 2, 3, 4, 5});
  EXPECT_EQ(data.evaluate(gradient(window(x, 0, 3, 1), x)).real, (Reals{1, 2, 3, 2, 1}));
  EXPECT_EQ(data.evaluate(gradient(window(x, 0, 2, 2), x)).real, (Reals{1, 1, 1, 1, 0}));
  EXPECT_EQ(data.evaluate(gradient(window(x, 0, 1, 3), x)).real, (Reals{1, 0, 0, 1, 0}));
  // Side by side they need no scatter.
  EXPECT_FALSE(uses(gradient(window(x, 0, 2, 2), x), Op::scatter_add));
  EXPECT_TRUE(uses(gradient(window(x, 0, 3, 1), x), Op::scatter_add));
}

TEST(Backward, SlicesOfNothingAndBackwards) {
  GraphData data;
  const Value x = data.real({4}, {1, 2, 3, 4}), w = data.real({2}, {10, 20});
  const Value back = gradient(slice(x, {2}, {2}, {-1}) * w, x);
  EXPECT_EQ(data.evaluate(back).real, (Reals{0, 20, 10, 0}));
  EXPECT_FALSE(uses(back, Op::scatter_add));
  for (const int64_t step : {1, -1, 2}) {
    const Value none = slice(x, {9}, {0}, {step});  // a start beyond the end
    EXPECT_EQ(data.evaluate(gradient(none, x)).real, (Reals{0, 0, 0, 0}));
  }
}

TEST(Backward, IndicesOfASortPassNoGradient) {
  GraphData data;
  const Value x = data.real({3}, {3, 1, 2});
  const Value places = cast(sort(x, false)[1], DType::f64);
  EXPECT_FALSE(gradient(places * places, x));
  const Value values = sort(x, false)[0];
  EXPECT_EQ(data.evaluate(gradient(values * places, x)).real, (Reals{0, 1, 2}));
}

TEST(Backward, ADiamondOfManyLevelsStaysLinear) {
  GraphData data;
  const Value x = data.real({}, {1.01});
  Value y = x;
  for (int i = 0; i < 60; ++i) y = y + y;  // 2^60 paths
  const Value g = gradient(y, x);
  EXPECT_EQ(data.evaluate(g).real, (Reals{0x1p60}));
  EXPECT_LT(topological_order(std::span(&g, 1)).size(), 200u);
}

TEST(Backward, BroadcastsSumBack) {
  GraphData data;
  const Value row = data.real({1, 3}, {1, 2, 3}), column = data.real({2, 1}, {10, 20});
  const Value scalar = data.real({}, {7});
  const Value y = row * column + scalar;
  EXPECT_EQ(data.evaluate(gradient(y, row)).real, (Reals{30, 30, 30}));
  EXPECT_EQ(data.evaluate(gradient(y, column)).real, (Reals{6, 6}));
  EXPECT_EQ(data.evaluate(gradient(y, scalar)).real, (Reals{6}));
}

TEST(Backward, GathersAddRepeatedIndices) {
  GraphData data;
  const Value x = data.real({3}, {1, 2, 3}), index = data.integer({4}, {2, 0, 2, 2});
  const Value weights = data.real({4}, {1, 10, 100, 1000});
  EXPECT_EQ(data.evaluate(gradient(gather(x, index, 0) * weights, x)).real, (Reals{10, 0, 1101}));
}

TEST(Backward, TiesShareTheGradient) {
  GraphData data;
  const Value x = data.real({4}, {5, 1, 5, 2}), y = data.real({4}, {5, 2, 1, 2});
  EXPECT_EQ(data.evaluate(gradient(reduce(Op::max, x, {0}), x)).real, (Reals{0.5, 0, 0.5, 0}));
  EXPECT_EQ(data.evaluate(gradient(reduce(Op::min, x, {0}), x)).real, (Reals{0, 1, 0, 0}));
  EXPECT_EQ(data.evaluate(gradient(apply(Op::maximum, x, y), x)).real, (Reals{0.5, 0, 1, 0.5}));
  EXPECT_EQ(data.evaluate(gradient(apply(Op::minimum, x, y), y)).real, (Reals{0.5, 0, 1, 0.5}));
}

TEST(Backward, PowerOfZeroHasNoLogarithm) {
  GraphData data;
  const Value x = data.real({2}, {0, -2}), two = data.real({2}, {2, 2});
  EXPECT_EQ(data.evaluate(gradient(apply(Op::pow, x, two), x)).real, (Reals{0, -4}));
  EXPECT_EQ(data.evaluate(gradient(apply(Op::pow, x, two), two)).real, (Reals{0, 0}));
}

TEST(Backward, AnInputMayBeAnOutputOrLieOnAnothersPath) {
  GraphData data;
  const Value x = data.real({}, {3});
  const Value y = x * x, z = y * y;
  const Values outputs = {z, y}, inputs = {x, y, z};
  const Values ones(2, constant(DType::f64, 1));
  const Values g = backward(outputs, ones, inputs);
  EXPECT_EQ(data.evaluate(g[2]).real, (Reals{1}));
  EXPECT_EQ(data.evaluate(g[1]).real, (Reals{2 * 9 + 1}));
  EXPECT_EQ(data.evaluate(g[0]).real, (Reals{(2 * 9 + 1) * 6}));
}

TEST(Backward, UnconnectedInputsAreEmpty) {
  GraphData data;
  const Value x = data.real({2}, {1, 2}), other = data.real({2}, {1, 2});
  EXPECT_FALSE(gradient(x * x, other));
  EXPECT_FALSE(gradient(stop_gradient(x * x), x));
  EXPECT_FALSE(gradient(apply(Op::floor, x), x));
  EXPECT_FALSE(gradient(cast(cast(x, DType::i32), DType::f64), x));
}

TEST(Backward, SkipsWhatLeadsToNoInput) {
  GraphData data;
  const Value x = data.real({2, 2}, {1, 2, 3, 4}), w = data.real({2, 2}, {1, 0, 0, 1});
  const Value g = gradient(matmul(apply(Op::exp, x), w), w);
  // Only ∂/∂w is asked for: nothing of the gradient of exp may be built.
  const Value expected = matmul(swap_last(apply(Op::exp, x)), full({DType::f64, {2, 2}}, 1));
  EXPECT_EQ(g, expected);
}

TEST(Backward, StopGradientStopsOnlyItsPath) {
  GraphData data;
  const Value x = data.real({}, {3});
  EXPECT_EQ(data.evaluate(gradient(x * stop_gradient(x), x)).real, (Reals{3}));
}

TEST(Backward, AHundredThousandNodesInARow) {
  GraphData data;
  const Value x = data.real({}, {1});
  Value y = x;
  for (int i = 0; i < 100000; ++i) y = y * 1.0000001 + x;
  const Value g = gradient(y, x);
  // Σ r^k for k = 0 … n, with r = 1.0000001.
  const double r = 1.0000001, expected = (std::pow(r, 100001) - 1) / (r - 1);
  EXPECT_NEAR(data.evaluate(g).real[0] / expected, 1, 1e-6);
}

// Kernel ops --------------------------------------------------------------------------------------

struct Norm {
  GraphData data;
  Value x = data.real({2, 3}, {1, -2, 4, 0.5, 3, -1});
  Value gamma = data.real({3}, {1.5, -0.5, 2}), beta = data.real({3}, {0.1, 0.2, 0.3});
  Values outputs = layer_norm(x, gamma, beta, 1e-3);
};

TEST(KernelGradient, IsAnotherKernelWithSeveralOutputs) {
  Norm n;
  const Value ones = full(n.outputs[0].type(), 1);
  const Values inputs = {n.x, n.gamma, n.beta};
  const Values g = backward(std::span(&n.outputs[0], 1), std::span(&ones, 1), inputs);
  ASSERT_EQ(g[0].node->op, Op::layer_norm_backward);
  EXPECT_EQ(g[0].node, g[1].node);
  EXPECT_EQ(g[0].node, g[2].node);
  EXPECT_EQ(g[2].out, 2);
  // It takes the statistics that the forward kernel has saved.
  EXPECT_EQ(g[0].node->inputs()[3], n.outputs[1]);
  EXPECT_EQ(g[0].node->inputs()[4], n.outputs[2]);
  EXPECT_EQ(n.data.evaluate(g[2]).real, (Reals{2, 2, 2}));
}

// d/dx of Σ f, by differences of the interpreter.
Reals differences(const std::function<double(const Reals&)>& f, Reals x) {
  Reals result;
  for (double& element : x) {
    const double middle = element, h = 1e-5;
    element = middle + h;
    const double above = f(x);
    element = middle - h;
    result.push_back((above - f(x)) / (2 * h));
    element = middle;
  }
  return result;
}

void expect_near(const Reals& actual, const Reals& expected, double tolerance = 1e-7) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(actual[i], expected[i], tolerance) << i;
}

// What the statistics feed takes the composite's way: a loss of y, mean and rstd together.
Value loss_of_all(const Values& y) {
  const Value weights = iota(DType::f64, {2, 3}, 1) + iota(DType::f64, {2, 3}, 0) * 0.3;
  return sum_all(y[0] * weights) + sum_all(y[1] * y[1]) + sum_all(y[2] * 3.0);
}

TEST(KernelGradient, FlowsIntoTheStatistics) {
  Norm n;
  const Reals x0 = n.data.evaluate(n.x).real;
  const Value loss = loss_of_all(n.outputs);
  const Value g = gradient(loss, n.x);
  EXPECT_FALSE(uses(g, Op::layer_norm_backward));
  expect_near(n.data.evaluate(g).real,
              differences(
                  [](const Reals& x) {
                    GraphData data;
                    const Value gamma = data.real({3}, {1.5, -0.5, 2});
                    const Value beta = data.real({3}, {0.1, 0.2, 0.3});
                    return data
                        .evaluate(loss_of_all(layer_norm(data.real({2, 3}, x), gamma, beta, 1e-3)))
                        .real[0];
                  },
                  x0));
}

TEST(KernelGradient, SecondOrderGoesThroughTheComposite) {
  auto first = [](GraphData& data, const Value& x) {
    const Value gamma = data.real({3}, {1.5, -0.5, 2}), beta = data.real({3}, {0.1, 0.2, 0.3});
    const Value y = layer_norm(x, gamma, beta, 1e-3)[0];
    return sum_all(gradient(sum_all(y * y), x) * iota(DType::f64, {2, 3}, 1));
  };
  const Reals x0 = {1, -2, 4, 0.5, 3, -1};
  GraphData data;
  const Value x = data.real({2, 3}, x0);
  const Value second = gradient(first(data, x), x);
  expect_near(data.evaluate(second).real,
              differences(
                  [&](const Reals& at) {
                    GraphData moved;
                    return moved.evaluate(first(moved, moved.real({2, 3}, at))).real[0];
                  },
                  x0));
}

// Inside the composite of softmax(x), x itself appears: an input that is computed from another
// input must not be differentiated through there.
TEST(KernelGradient, AnInputThatEqualsAValueInsideTheComposite) {
  auto statistics = [](const Value& x, const Value& gamma) {
    // gamma = mean of x over rows: computed from the other input.
    const Values y = layer_norm(x, gamma, gamma, 1e-3);
    return sum_all(y[0]) + sum_all(y[2]);
  };
  auto loss = [&](const Value& x) {
    return statistics(x, reshape(reduce(Op::sum, x, {0}) * 0.5, {3}));
  };
  const Reals x0 = {1, -2, 4, 0.5, 3, -1};
  GraphData data;
  const Value x = data.real({2, 3}, x0);
  expect_near(data.evaluate(gradient(loss(x), x)).real,
              differences(
                  [&](const Reals& at) {
                    GraphData moved;
                    return moved.evaluate(loss(moved.real({2, 3}, at))).real[0];
                  },
                  x0));
}

TEST(KernelGradient, OfAValueThatTheCompositeAlsoBuilds) {
  // mean is also what the composite computes: the two are one interned node.
  auto loss = [](GraphData& data, const Value& x) {
    const Value gamma = data.real({3}, {1.5, -0.5, 2}), beta = data.real({3}, {0.1, 0.2, 0.3});
    const Value mean = reduce(Op::sum, x, {1}) * (1.0 / 3);
    const Values y = layer_norm(x - mean, gamma, beta, 1e-3);
    return sum_all(y[0] * mean) + sum_all(y[1] + y[2]) + sum_all(mean * mean);
  };
  const Reals x0 = {1, -2, 4, 0.5, 3, -1};
  GraphData data;
  const Value x = data.real({2, 3}, x0);
  expect_near(data.evaluate(gradient(loss(data, x), x)).real,
              differences(
                  [&](const Reals& at) {
                    GraphData moved;
                    return moved.evaluate(loss(moved, moved.real({2, 3}, at))).real[0];
                  },
                  x0));
}

// custom_vjp --------------------------------------------------------------------------------------

Values custom(const Values& inputs, const Values& outputs, const VjpFunction& vjp) {
  Attrs attrs;
  attrs.axis = int64_t(inputs.size());
  Values all = inputs;
  all.insert(all.end(), outputs.begin(), outputs.end());
  return outputs_of(
      make_node(Op::custom_vjp, all, attrs, std::make_shared<const VjpFunction>(vjp)));
}

TEST(CustomVjpNode, MissingOutputGradientsAreZeros) {
  GraphData data;
  const Value x = data.real({2}, {1, 2});
  const Values y =
      custom({x}, {x * 2.0, x * 3.0}, [](const Values&, const Values&, const Values& g) {
        EXPECT_EQ(g.size(), 2u);
        return Values{g[0] + g[1] * 10.0};
      });
  EXPECT_EQ(data.evaluate(gradient(y[0], x)).real, (Reals{1, 1}));
  EXPECT_EQ(data.evaluate(gradient(y[1], x)).real, (Reals{10, 10}));
}

TEST(CustomVjpNode, NothingPassesThroughItsForwardValues) {
  GraphData data;
  const Value x = data.real({2}, {1, 2});
  const Values y = custom(
      {x}, {x * 2.0}, [](const Values&, const Values&, const Values&) { return Values{Value{}}; });
  EXPECT_FALSE(gradient(y[0], x));
}

TEST(CustomVjpNode, WrongGradients) {
  GraphData data;
  const Value x = data.real({2}, {1, 2});
  auto with = [&](const Values& result) {
    const Values y =
        custom({x, x}, {x * 2.0},
               [result](const Values&, const Values&, const Values&) { return result; });
    return error_text([&] { gradient(y[0], x); });
  };
  EXPECT_EQ(with({x}), "custom_vjp: expected 2 gradients, got 1");
  EXPECT_EQ(with({x, sum_all(x)}),
            "custom_vjp: expected a gradient of f64(2,) for input 1, got f64(1,)");
}

}  // namespace
}  // namespace tessera
