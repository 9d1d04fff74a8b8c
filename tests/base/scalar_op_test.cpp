#include "tessera/base/scalar_op.h"

#include <gtest/gtest.h>

#include <set>

namespace tessera {
namespace {

TEST(ScalarOp, RowsMatchTheEnumeration) {
  EXPECT_EQ(name(ScalarOp::neg), "neg");
  EXPECT_EQ(name(ScalarOp::logical_or), "logical_or");
  EXPECT_EQ(name(ScalarOp::where), "where");
  EXPECT_EQ(name(ScalarOp::uniform), "uniform");
  EXPECT_EQ(info(ScalarOp::maximum).expression, "a > b || a != a ? a : b");
}

TEST(ScalarOp, RowsAreWellFormed) {
  std::set<std::string_view> names;
  for (int i = 0; i < kScalarOpCount; ++i) {
    const ScalarOpInfo& row = info(static_cast<ScalarOp>(i));
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_GE(row.arity, 1) << row.name;
    EXPECT_LE(row.arity, 3) << row.name;
    EXPECT_GE(row.ulp, 0) << row.name;
    EXPECT_FALSE(row.expression.empty()) << row.name;
    EXPECT_TRUE(row.algebra == ScalarAlgebra::plain || row.arity == 2) << row.name;
  }
}

TEST(ScalarOp, Accepts) {
  EXPECT_TRUE(accepts(ScalarOp::eq, DType::boolean));
  EXPECT_TRUE(accepts(ScalarOp::add, DType::u8));
  EXPECT_FALSE(accepts(ScalarOp::add, DType::boolean));
  EXPECT_TRUE(accepts(ScalarOp::exp, DType::bf16));
  EXPECT_FALSE(accepts(ScalarOp::exp, DType::i64));
  EXPECT_TRUE(accepts(ScalarOp::logical_not, DType::boolean));
  EXPECT_FALSE(accepts(ScalarOp::logical_not, DType::f32));
  EXPECT_TRUE(accepts(ScalarOp::bitwise_and, DType::boolean));
  EXPECT_TRUE(accepts(ScalarOp::bitwise_and, DType::u32));
  EXPECT_FALSE(accepts(ScalarOp::bitwise_and, DType::f16));
  EXPECT_TRUE(accepts(ScalarOp::shift_left, DType::i8));
  EXPECT_FALSE(accepts(ScalarOp::shift_left, DType::boolean));
  EXPECT_FALSE(accepts(ScalarOp::shift_left, DType::f64));
  EXPECT_TRUE(accepts(ScalarOp::where, DType::i32));
}

}  // namespace
}  // namespace tessera
