// The definitions of the kernel ops against plain loops in f64.
#include "tessera/graph/composite.h"

#include <gtest/gtest.h>

#include <cmath>

#include "graph/graph_data.h"
#include "tessera/graph/build.h"
#include "tessera/graph/verify.h"

namespace tessera {
namespace {

using namespace graph;
using Reals = std::vector<double>;

constexpr double kEpsilon = 1e-5;

// Smooth, without pattern along rows or columns.
Reals numbers(size_t n, double seed) {
  Reals values(n);
  for (size_t i = 0; i < n; ++i) values[i] = 2 * std::sin(1.7 * double(i) + seed) + 0.3 * seed;
  return values;
}

void expect_near(const Reals& actual, const Reals& expected, double tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(actual[i], expected[i], tolerance) << i;
}

Reals softmax_rows(const Reals& x, size_t columns) {
  Reals y(x.size());
  for (size_t row = 0; row < x.size(); row += columns) {
    double sum = 0;
    for (size_t j = 0; j < columns; ++j) sum += std::exp(x[row + j]);
    for (size_t j = 0; j < columns; ++j) y[row + j] = std::exp(x[row + j]) / sum;
  }
  return y;
}

struct Norm {
  Reals y, mean, rstd;
};

Norm norm_rows(const Reals& x, const Reals& gamma, const Reals& beta) {
  Norm norm;
  const size_t columns = gamma.size();
  for (size_t row = 0; row < x.size(); row += columns) {
    double mean = 0, variance = 0;
    for (size_t j = 0; j < columns; ++j) mean += x[row + j] / double(columns);
    for (size_t j = 0; j < columns; ++j) {
      variance += std::pow(x[row + j] - mean, 2) / double(columns);
    }
    norm.mean.push_back(mean);
    norm.rstd.push_back(1 / std::sqrt(variance + kEpsilon));
    for (size_t j = 0; j < columns; ++j) {
      norm.y.push_back((x[row + j] - mean) * norm.rstd.back() * gamma[j] + beta[j]);
    }
  }
  return norm;
}

const Shape kShapes[] = {{5}, {1, 7}, {3, 4}, {2, 3, 5}, {4, 1}};

TEST(Composite, Softmax) {
  for (const Shape& shape : kShapes) {
    GraphData data;
    const Reals x = numbers(size_t(numel(shape)), 1);
    const Array y = data.evaluate(softmax(data.real(shape, x)));
    expect_near(y.real, softmax_rows(x, size_t(shape.back())), 1e-14);
  }
}

TEST(Composite, SoftmaxOfLargeAndAbsentValues) {
  GraphData data;
  const double inf = std::numeric_limits<double>::infinity();
  const Value x = data.real({2, 2}, {1000, 1000, -inf, 3});
  expect_near(data.evaluate(softmax(x)).real, {0.5, 0.5, 0, 1}, 0);
  EXPECT_TRUE(data.evaluate(softmax(data.real({2, 0}, {}))).real.empty());
  EXPECT_TRUE(data.evaluate(softmax(data.real({0, 2}, {}))).real.empty());
}

TEST(Composite, LayerNorm) {
  for (const Shape& shape : kShapes) {
    GraphData data;
    const size_t columns = size_t(shape.back());
    const Reals x = numbers(size_t(numel(shape)), 1), gamma = numbers(columns, 2),
                beta = numbers(columns, 3);
    const Dims vector = {shape.back()};
    const auto results = data.evaluate_all(layer_norm(data.real(shape, x), data.real(vector, gamma),
                                                      data.real(vector, beta), kEpsilon));
    const Norm expected = norm_rows(x, gamma, beta);
    expect_near(results[0].real, expected.y, 1e-12);
    expect_near(results[1].real, expected.mean, 1e-14);
    expect_near(results[2].real, expected.rstd, 1e-10 * expected.rstd[0]);
  }
}

// d/dv of Σ g · y by central differences of the plain loop; v is one of its arguments.
Reals differences(const Reals& g, Reals& v, const std::function<Norm()>& forward) {
  const auto loss = [&] {
    const Reals y = forward().y;
    double sum = 0;
    for (size_t i = 0; i < y.size(); ++i) sum += g[i] * y[i];
    return sum;
  };
  Reals result;
  for (double& element : v) {
    const double kept = element, step = 1e-5;
    element = kept + step;
    const double above = loss();
    element = kept - step;
    const double below = loss();
    element = kept;
    result.push_back((above - below) / (2 * step));
  }
  return result;
}

TEST(Composite, LayerNormBackward) {
  for (const Shape& shape : {Shape{5}, Shape{3, 4}, Shape{2, 3, 5}}) {
    GraphData data;
    const size_t n = size_t(numel(shape)), columns = size_t(shape.back());
    Reals x = numbers(n, 1), gamma = numbers(columns, 2), beta = numbers(columns, 3);
    const Reals g = numbers(n, 4);
    const Dims vector = {shape.back()};
    const Value x_value = data.real(shape, x), gamma_value = data.real(vector, gamma);
    const auto y = layer_norm(x_value, gamma_value, data.real(vector, beta), kEpsilon);
    const auto results = data.evaluate_all(outputs_of(make_node(
        Op::layer_norm_backward, {data.real(shape, g), x_value, gamma_value, y[1], y[2]})));
    const auto forward = [&] { return norm_rows(x, gamma, beta); };
    expect_near(results[0].real, differences(g, x, forward), 1e-7);
    expect_near(results[1].real, differences(g, gamma, forward), 1e-7);
    expect_near(results[2].real, differences(g, beta, forward), 1e-7);
  }
}

TEST(Composite, RunningTotals) {
  GraphData data;
  const Value x = data.real({2, 3}, {1, 2, 3, 4, 0, 6});
  EXPECT_EQ(data.evaluate(cumsum(x, 1)).real, (Reals{1, 3, 6, 4, 4, 10}));
  EXPECT_EQ(data.evaluate(cumsum(x, 0)).real, (Reals{1, 2, 3, 5, 2, 9}));
  EXPECT_EQ(data.evaluate(cumprod(x, 1)).real, (Reals{1, 2, 6, 4, 0, 0}));
  const Value bytes = data.integer({3}, {100, 100, 100}, DType::i8);
  EXPECT_EQ(data.evaluate(cumsum(bytes, 0)).integer, (std::vector<int64_t>{100, -56, 44}));
  EXPECT_TRUE(data.evaluate(cumsum(data.real({2, 0}, {}), 1)).real.empty());
}

TEST(Composite, SortIsStableWithNanGreatest) {
  GraphData data;
  const double nan = std::nan("");
  const Value x = data.real({2, 4}, {3, nan, 1, 3, 0.0, -0.0, nan, nan});
  using Places = std::vector<int64_t>;
  EXPECT_EQ(data.evaluate(sort(x, false)[1]).integer, (Places{2, 0, 3, 1, 0, 1, 2, 3}));
  EXPECT_EQ(data.evaluate(sort(x, true)[1]).integer, (Places{1, 0, 3, 2, 2, 3, 0, 1}));
  EXPECT_EQ(data.evaluate(topk(x, 1, true)[1]).integer, (Places{1, 2}));
  EXPECT_EQ(data.evaluate(topk(x, 2, false)[1]).integer, (Places{2, 0, 0, 1}));
  const Value flags = data.integer({4}, {1, 0, 1, 0}, DType::boolean);
  EXPECT_EQ(data.evaluate(sort(flags, false)[0]).integer, (Places{0, 0, 1, 1}));
  EXPECT_EQ(data.evaluate(sort(flags, true)[1]).integer, (Places{0, 2, 1, 3}));
  EXPECT_TRUE(data.evaluate(sort(data.real({2, 0}, {}), false)[1]).integer.empty());
}

TEST(Composite, HasTheTypesOfItsNode) {
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
    for (const Shape& shape : kShapes) {
      const Value x = make_leaf({dtype, shape}), w = make_leaf({dtype, {shape.back()}});
      const auto y = layer_norm(x, w, w, kEpsilon);
      const NodePtr nodes[] = {softmax(x).node,
                               y[0].node,
                               cumsum(x, 0).node,
                               cumprod(x, 0).node,
                               sort(x, true)[0].node,
                               topk(x, 1, true)[0].node,
                               make_node(Op::layer_norm_backward, {x, x, w, y[1], y[2]})};
      for (const NodePtr& node : nodes) {
        const std::vector<Value> outputs = composite(*node);
        ASSERT_EQ(outputs.size(), node->types.size()) << name(node->op);
        for (size_t i = 0; i < outputs.size(); ++i) {
          EXPECT_EQ(outputs[i].type(), node->types[i]) << name(node->op) << " output " << i;
        }
        EXPECT_EQ(verify_graph(outputs), "");
      }
    }
  }
}

TEST(Composite, HalfTypesAreComputedWideAndRoundedOnce) {
  GraphData data;
  const Reals x = numbers(12, 1);
  const Value leaf = data.real({3, 4}, x, DType::f16);
  const Reals expected = softmax_rows(data.evaluate(leaf).real, 4);
  const Reals actual = data.evaluate(softmax(leaf)).real;
  for (size_t i = 0; i < actual.size(); ++i) {
    EXPECT_EQ(actual[i], double(float(f16(float(expected[i]))))) << i;
  }
}

TEST(CompositeDeathTest, PlainOpsHaveNone) {
  const Value x = make_leaf({DType::f32, {2}});
  EXPECT_DEATH(composite(*apply(Op::exp, x).node), "a kernel op without a composite");
}

}  // namespace
}  // namespace tessera
