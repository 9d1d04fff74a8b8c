// The scalar functions in the reference interpreter, through graphs.
#include "tessera/graph/interpret_scalar.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "graph/graph_data.h"
#include "tessera/graph/build.h"

namespace tessera {
namespace {

using namespace graph;
using Reals = std::vector<double>;
using Integers = std::vector<int64_t>;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

struct Unary {
  Op op;
  double x, y;
};

TEST(InterpretScalar, UnaryFunctions) {
  const Unary rows[] = {
      {Op::neg, 2.5, -2.5},
      {Op::abs, -2.5, 2.5},
      {Op::sign, -3, -1},
      {Op::sign, 0, 0},
      {Op::sign, 7, 1},
      {Op::exp, 1, 2.718281828459045},
      {Op::log, 10, 2.302585092994046},
      {Op::sqrt, 2, 1.4142135623730951},
      {Op::rsqrt, 4, 0.5},
      {Op::sin, 1, 0.8414709848078965},
      {Op::cos, 1, 0.5403023058681398},
      {Op::tanh, 0.5, 0.46211715726000973},
      {Op::erf, 0.5, 0.5204998778130465},
      {Op::sigmoid, 1, 0.7310585786300049},
      {Op::gelu_tanh, 1, 0.8411919906082768},
      {Op::gelu_tanh, -3, -0.003637392081773019},
      {Op::gelu_tanh_slope, 0, 0.5},
      {Op::gelu_tanh_slope, 1, 1.0829640838457826},
      {Op::floor, -1.5, -2},
      {Op::ceil, -1.5, -1},
      {Op::trunc, -1.5, -1},
      {Op::round, -1.5, -2},
      {Op::round, 2.5, 2},
      {Op::expm1, 1e-10, 1.00000000005e-10},
      {Op::log1p, 1e-10, 9.9999999995e-11},
      {Op::log2, 8, 3},
      {Op::tan, 1, 1.5574077246549023},
      {Op::asin, 0.5, 0.5235987755982989},
      {Op::acos, 0.5, 1.0471975511965979},
      {Op::atan, 1, 0.7853981633974483},
      {Op::sinh, 1, 1.1752011936438014},
      {Op::cosh, 1, 1.5430806348152437},
  };
  for (const Unary& row : rows) {
    GraphData data;
    const Array y = data.evaluate(apply(row.op, data.real({1}, {row.x})));
    EXPECT_DOUBLE_EQ(y.real[0], row.y) << name(row.op) << "(" << row.x << ")";
  }
}

struct Binary {
  Op op;
  double a, b, y;
};

TEST(InterpretScalar, BinaryFunctions) {
  const Binary rows[] = {
      {Op::add, 1.5, 2, 3.5},        {Op::sub, 1.5, 2, -0.5},
      {Op::mul, 1.5, 2, 3},          {Op::div, 3, 2, 1.5},
      {Op::div, 1, 0, kInf},         {Op::pow, 2, 0.5, 1.4142135623730951},
      {Op::maximum, 1, 2, 2},        {Op::maximum, 2, 1, 2},
      {Op::minimum, 1, 2, 1},        {Op::minimum, 2, 1, 1},
      {Op::floor_div, -7, 2, -4},    {Op::floor_div, 1, 0.1, 9},
      {Op::floor_div, 5, -kInf, -1}, {Op::floor_div, 5, 0, kInf},
      {Op::mod, -7, 2, 1},           {Op::mod, 7, -2, -1},
      {Op::mod, -5, kInf, kInf},     {Op::atan2, -1, -1, -2.356194490192345},
  };
  for (const Binary& row : rows) {
    GraphData data;
    const Array y = data.evaluate(apply(row.op, data.real({1}, {row.a}), data.real({1}, {row.b})));
    EXPECT_DOUBLE_EQ(y.real[0], row.y) << name(row.op) << "(" << row.a << ", " << row.b << ")";
  }
}

TEST(InterpretScalar, NanPassesThroughExtremes) {
  GraphData data;
  const Value a = data.real({2}, {kNan, 1}), b = data.real({2}, {1, kNan});
  for (const Op op : {Op::maximum, Op::minimum}) {
    for (const double value : data.evaluate(apply(op, a, b)).real) {
      EXPECT_TRUE(std::isnan(value)) << name(op);
    }
  }
  EXPECT_TRUE(std::isnan(data.evaluate(apply(Op::sign, a)).real[0]));
}

TEST(InterpretScalar, ComparisonsGiveBool) {
  GraphData data;
  const Value a = data.real({4}, {1, 2, 3, kNan}), b = data.real({4}, {2, 2, 2, kNan});
  const Value i = data.integer({3}, {1, 2, 3}, DType::u8),
              j = data.integer({3}, {2, 2, 2}, DType::u8);
  const std::pair<Op, Integers> rows[] = {
      {Op::eq, {0, 1, 0, 0}}, {Op::ne, {1, 0, 1, 1}}, {Op::lt, {1, 0, 0, 0}},
      {Op::le, {1, 1, 0, 0}}, {Op::gt, {0, 0, 1, 0}}, {Op::ge, {0, 1, 1, 0}},
  };
  for (const auto& [op, expected] : rows) {
    const Array y = data.evaluate(apply(op, a, b));
    EXPECT_EQ(y.type.dtype, DType::boolean);
    EXPECT_EQ(y.integer, expected) << name(op);
    EXPECT_TRUE(y.real.empty());
    EXPECT_EQ(data.evaluate(apply(op, i, j)).integer,
              Integers(expected.begin(), expected.end() - 1))
        << name(op);
  }
  const Value special = data.real({4}, {1, kInf, -kInf, kNan});
  EXPECT_EQ(data.evaluate(apply(Op::isfinite, special)).integer, (Integers{1, 0, 0, 0}));
}

TEST(InterpretScalar, Logic) {
  GraphData data;
  const Value a = data.integer({4}, {0, 0, 1, 1}, DType::boolean);
  const Value b = data.integer({4}, {0, 1, 0, 1}, DType::boolean);
  EXPECT_EQ(data.evaluate(apply(Op::logical_and, a, b)).integer, (Integers{0, 0, 0, 1}));
  EXPECT_EQ(data.evaluate(apply(Op::logical_or, a, b)).integer, (Integers{0, 1, 1, 1}));
  EXPECT_EQ(data.evaluate(apply(Op::logical_not, a)).integer, (Integers{1, 1, 0, 0}));
  EXPECT_EQ(data.evaluate(apply(Op::eq, a, b)).integer, (Integers{1, 0, 0, 1}));
}

TEST(InterpretScalar, Where) {
  GraphData data;
  const Value c = data.integer({3}, {1, 0, 1}, DType::boolean);
  const Value a = data.real({3}, {1, 2, 3}), b = data.real({3}, {-1, -2, kNan});
  EXPECT_EQ(data.evaluate(where(c, a, b)).real, (Reals{1, -2, 3}));
  const Value i = data.integer({3}, {7, 8, 9}), j = data.integer({3}, {4, 5, 6});
  EXPECT_EQ(data.evaluate(where(c, i, j)).integer, (Integers{7, 5, 9}));
}

TEST(InterpretScalar, IntegersWrapToTheirWidth) {
  GraphData data;
  const Value small = data.integer({2}, {127, -128}, DType::i8);
  EXPECT_EQ(data.evaluate(small + small).integer, (Integers{-2, 0}));
  EXPECT_EQ(data.evaluate(small * small).integer, (Integers{1, 0}));
  EXPECT_EQ(data.evaluate(-small).integer, (Integers{-127, -128}));
  EXPECT_EQ(data.evaluate(apply(Op::abs, small)).integer, (Integers{127, -128}));
  EXPECT_EQ(data.evaluate(apply(Op::sign, small)).integer, (Integers{1, -1}));
  EXPECT_EQ(data.evaluate(apply(Op::maximum, small, -small)).integer, (Integers{127, -128}));

  const Value word = data.integer({2}, {4294967295, 1}, DType::u32);
  EXPECT_EQ(data.evaluate(word * word).integer, (Integers{1, 1}));
  EXPECT_EQ(data.evaluate(-word).integer, (Integers{1, 4294967295}));

  const Value big = data.integer({2}, {INT64_MIN, INT64_MAX});
  EXPECT_EQ(data.evaluate(-big).integer, (Integers{INT64_MIN, -INT64_MAX}));
  EXPECT_EQ(data.evaluate(big + big).integer, (Integers{0, -2}));
  EXPECT_EQ(data.evaluate(big * big).integer, (Integers{0, 1}));
  EXPECT_EQ(data.evaluate(apply(Op::abs, big)).integer, (Integers{INT64_MIN, INT64_MAX}));
}

TEST(InterpretScalar, DivisionsAndShiftsOfIntegers) {
  GraphData data;
  const Value a = data.integer({6}, {-7, 7, INT64_MIN, 5, INT64_MIN, 0});
  const Value b = data.integer({6}, {2, -2, -1, 0, INT64_MAX, 3});
  EXPECT_EQ(data.evaluate(apply(Op::floor_div, a, b)).integer,
            (Integers{-4, -4, INT64_MIN, 0, -2, 0}));
  EXPECT_EQ(data.evaluate(apply(Op::mod, a, b)).integer, (Integers{1, -1, 0, 0, INT64_MAX - 1, 0}));
  const Value x = data.integer({5}, {1, -1, 100, -100, -100}, DType::i8);
  const Value by = data.integer({5}, {7, 8, 1, 1, -1}, DType::i8);
  EXPECT_EQ(data.evaluate(apply(Op::shift_left, x, by)).integer, (Integers{-128, 0, -56, 56, 0}));
  EXPECT_EQ(data.evaluate(apply(Op::shift_right, x, by)).integer, (Integers{0, -1, 50, -50, -1}));
  const Value word = data.integer({2}, {4294967295, 12}, DType::u32);
  EXPECT_EQ(data.evaluate(apply(Op::bitwise_not, word)).integer, (Integers{0, 4294967283}));
  EXPECT_EQ(data.evaluate(apply(Op::bitwise_and, word, -word)).integer, (Integers{1, 4}));
  EXPECT_EQ(data.evaluate(apply(Op::bitwise_or, word, -word)).integer,
            (Integers{4294967295, 4294967292}));
  EXPECT_EQ(data.evaluate(apply(Op::bitwise_xor, word, -word)).integer,
            (Integers{4294967294, 4294967288}));
}

TEST(InterpretScalarDeathTest, FloatFunctionsHaveNoIntegerForm) {
  EXPECT_DEATH(apply_scalar(ScalarOp::exp, DType::i32, 1, 1), "assertion failed");
}

}  // namespace
}  // namespace tessera
