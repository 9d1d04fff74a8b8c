#include <gtest/gtest.h>

#include <cmath>

#include "compile/function_builder.h"
#include "graph/graph_data.h"

namespace tessera {
namespace {

using namespace graph;

Value simplified(const Value& v, std::vector<Value> externals = {}) {
  return simplify(function(std::move(externals), {v})).outputs[0];
}

TEST(Simplify, RemovesExactIdentities) {
  const Value x = leaf({2, 3});
  const Value one = constant(DType::f32, 1), zero = constant(DType::f32, 0.0);
  EXPECT_EQ(simplified(x * one), x);
  EXPECT_EQ(simplified(one * x), x);
  EXPECT_EQ(simplified(x / one), x);
  EXPECT_EQ(simplified(x - zero), x);
  EXPECT_EQ(simplified(x + constant(DType::f32, -0.0)), x);
  EXPECT_EQ(simplified(-(-x)), x);
  const Value condition = apply(Op::gt, x, zero);
  EXPECT_EQ(simplified(where(condition, x, x)), x);
  EXPECT_EQ(simplified(where(constant(DType::boolean, 1), x, -x)), x);
  EXPECT_EQ(simplified(where(constant(DType::boolean, 0), -x, x)), x);
}

// Each of these changes some IEEE value: a NaN, an infinity or the sign of a zero.
TEST(Simplify, KeepsWhatIsNotExact) {
  const Value x = leaf({2, 3});
  const Value zero = constant(DType::f32, 0.0);
  EXPECT_EQ(simplified(x * zero).node->op, Op::mul);
  EXPECT_EQ(simplified(x + zero).node->op, Op::add);
  EXPECT_EQ(simplified(x - constant(DType::f32, -0.0)).node->op, Op::sub);
  EXPECT_EQ(simplified(x - x).node->op, Op::sub);
  EXPECT_EQ(simplified(x / x).node->op, Op::div);
  EXPECT_EQ(simplified(zero / x).node->op, Op::div);
}

TEST(Simplify, IntegersHaveOneZero) {
  const Value x = leaf({4}, DType::i32);
  EXPECT_EQ(simplified(x + constant_int(DType::i32, 0)), x);
}

TEST(Simplify, MergesMovesAndCasts) {
  const Value x = leaf({2, 3, 4});
  EXPECT_EQ(simplified(reshape(reshape(x, {6, 4}), {2, 3, 4})), x);
  EXPECT_EQ(simplified(permute(permute(x, {1, 2, 0}), {2, 0, 1})), x);
  const Value merged = simplified(permute(permute(x, {1, 2, 0}), {1, 2, 0}));
  EXPECT_EQ(merged, permute(x, {2, 0, 1}));
  EXPECT_EQ(simplified(slice(x, {0, 0, 0}, {2, 3, 4}, {1, 1, 1})), x);
  EXPECT_NE(simplified(slice(x, {1, 2, 3}, {2, 3, 4}, {-1, -1, -1})), x);
  EXPECT_EQ(simplified(pad(x, {0, 0, 0}, {0, 0, 0}, 1)), x);
  EXPECT_EQ(simplified(concat({x}, 0)), x);
  const Value h = leaf({2}, DType::bf16);
  EXPECT_EQ(simplified(cast(cast(h, DType::f32), DType::bf16)), h);
  // Through a narrower type it rounds.
  EXPECT_EQ(simplified(cast(cast(x, DType::bf16), DType::f32)).node->op, Op::cast);
  const Value row = leaf({2, 1});
  EXPECT_EQ(simplified(reduce(Op::sum, row, {1})), row);
}

TEST(Simplify, FoldsConstantsExactly) {
  auto value = [](const Value& v) { return scalar_as_double(v.dtype(), v.node->attrs.bits); };
  const Value third = constant(DType::f32, 1) / constant(DType::f32, 3);
  ASSERT_EQ(simplified(third).node->op, Op::constant);
  EXPECT_EQ(value(simplified(third)), double(1.0f / 3.0f));
  const Value big = constant_int(DType::i64, INT64_MAX) + constant_int(DType::i64, 1);
  EXPECT_EQ(int64_t(simplified(big).node->attrs.bits), INT64_MIN);
  const Value least = constant_int(DType::i64, INT64_MIN), seven = constant_int(DType::i64, 7);
  EXPECT_EQ(int64_t(simplified(-least).node->attrs.bits), INT64_MIN);
  EXPECT_EQ(int64_t(simplified(least - seven).node->attrs.bits), INT64_MAX - 6);
  EXPECT_EQ(int64_t(simplified(seven * seven).node->attrs.bits), 49);
  const Value difference = constant(DType::f32, 0.1) - constant(DType::f32, 0.3);
  EXPECT_EQ(value(simplified(difference)), double(0.1f - 0.3f));
  // exp is not exact: every backend computes its own.
  EXPECT_EQ(simplified(apply(Op::exp, constant(DType::f32, 1))).node->op, Op::exp);
  // Half types are not folded: they would round where a kernel does not.
  EXPECT_EQ(simplified(constant(DType::bf16, 1) + constant(DType::bf16, 2)).node->op, Op::add);
}

TEST(Simplify, PowersBecomeProductsAndRoots) {
  GraphData data;
  const double inf = INFINITY;
  const std::vector<double> xs = {0.0,  -0.0,  1,   -1,   2,        -3,      0.25,  1e-40,
                                  1e30, -1e30, inf, -inf, 1.0e-310, -1e-160, 1e160, NAN};
  const Value x = data.real({int64_t(xs.size())}, xs);
  for (double exponent : {1.0, 2.0, 3.0, 0.5, -1.0, -2.0}) {
    const Value power = apply(Op::pow, x, constant(DType::f64, exponent));
    const GraphFunction f = simplify(function({x}, {power}));
    EXPECT_FALSE(computes(f, Op::pow)) << exponent;
    const std::vector<double> got = data.evaluate(f.outputs[0]).real;
    for (size_t i = 0; i < xs.size(); ++i) {
      const double want = std::pow(xs[i], exponent);
      if (std::isnan(want)) {
        EXPECT_TRUE(std::isnan(got[i])) << xs[i] << " to the power of " << exponent;
        continue;
      }
      EXPECT_DOUBLE_EQ(got[i], want) << xs[i] << " to the power of " << exponent;
      EXPECT_EQ(std::signbit(got[i]), std::signbit(want)) << xs[i] << " to " << exponent;
    }
  }
  const Value other = apply(Op::pow, x, constant(DType::f64, 2.5));
  EXPECT_EQ(simplified(other).node->op, Op::pow);
}

// What the gradient of a power says of a literal exponent: b · x^(b - 1), or 0 where b is 0.
TEST(Simplify, LiteralsFoldWhereTheyAreExpanded) {
  const Value x = leaf({4}), b = full({DType::f32, {4}}, 2);
  EXPECT_EQ(simplified(apply(Op::pow, x, b + -1.0)), x);
  const Value zero = full({DType::f32, {4}}, 0);
  EXPECT_EQ(simplified(where(apply(Op::eq, b, zero), -x, x)), x);
  EXPECT_EQ(simplified(where(apply(Op::eq, b, b), x, -x)), x);
}

TEST(Simplify, CommonSubexpressionsAreOneNode) {
  const Value x = leaf({3});
  const GraphFunction f =
      simplify(function({x}, {apply(Op::exp, x * constant(DType::f32, 1)), apply(Op::exp, x)}));
  EXPECT_EQ(f.outputs[0], f.outputs[1]);
}

}  // namespace
}  // namespace tessera
