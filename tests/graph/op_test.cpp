#include "tessera/graph/op.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace tessera {
namespace {

TEST(OpTable, NamesAreUniqueAndNotEmpty) {
  std::set<std::string_view> names;
  for (int i = 0; i < kOpCount; ++i) {
    const OpInfo& row = info(static_cast<Op>(i));
    EXPECT_FALSE(row.name.empty());
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
  }
}

TEST(OpTable, ScalarFunctionsConvertByNumber) {
  for (int i = 0; i < kOpCount; ++i) {
    const Op op = static_cast<Op>(i);
    if (!is_scalar_fn(op)) continue;
    EXPECT_EQ(name(op), name(scalar_op(op)));
    EXPECT_EQ(info(op).arity, info(scalar_op(op)).arity) << name(op);
    EXPECT_EQ(info(op).kind, OpKind::scalar) << name(op);
  }
  EXPECT_TRUE(is_scalar_fn(Op::where));
  EXPECT_FALSE(is_scalar_fn(Op::uniform));
  EXPECT_FALSE(is_scalar_fn(Op::cast));
}

TEST(OpTable, RowsHoldTheFacts) {
  EXPECT_TRUE(info(Op::add).commutative);
  EXPECT_FALSE(info(Op::sub).commutative);
  EXPECT_EQ(info(Op::concat).arity, -1);
  EXPECT_EQ(info(Op::custom_vjp).outputs, -1);
  EXPECT_EQ(info(Op::layer_norm).outputs, 3);
  EXPECT_EQ(info(Op::uniform).kind, OpKind::source);
  EXPECT_EQ(info(Op::matmul).kernel, "matmul");
}

TEST(OpTable, KernelOpsNameTheirKernel) {
  for (int i = 0; i < kOpCount; ++i) {
    const OpInfo& row = info(static_cast<Op>(i));
    if (row.kind == OpKind::kernel) {
      EXPECT_FALSE(row.kernel.empty()) << row.name;
    }
    if (row.kind == OpKind::scalar) {
      EXPECT_TRUE(row.kernel.empty()) << row.name;
    }
  }
}

}  // namespace
}  // namespace tessera
