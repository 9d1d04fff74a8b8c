#include "tessera/kernel/kernel_ir.h"

#include <gtest/gtest.h>

#include <set>

#include "kernel/ir_builder.h"
#include "tessera/kernel/kernel_call.h"

namespace tessera {
namespace {

KernelIR exp_sum(Dims extents = {4, 5}) {
  IrBuilder b("exp sum", extents, 1);
  const int x = b.in(DType::f16), y = b.out(DType::f32);
  const int e = b.scalar(ScalarOp::exp, {b.load(x, {5, 1})});
  b.store(y, {1, 0}, b.reduce(ReduceOp::sum, e));
  return b.build();
}

KernelIR pad_gather() {
  IrBuilder b("pad gather", {6, 3}, 1);
  const int x = b.in(DType::f32), index = b.in(DType::i64), y = b.out(DType::bf16);
  const int zero = b.constant(DType::f32, -0.5);
  const int i = b.load(index, {1, 0}, 2);
  const int v = b.load_masked_indexed(x, {0, 1}, {1, 0}, {5, 3}, zero, i, 3, 10);
  b.store(y, {3, 1}, b.cast(v, DType::bf16));
  return b.build();
}

TEST(KernelIR, CountsPointsOfBothDomains) {
  const KernelIR ir = exp_sum();
  EXPECT_FALSE(ir.is_map());
  EXPECT_EQ(ir.outer_count(), 4);
  EXPECT_EQ(ir.inner_count(), 5);
  EXPECT_EQ(exp_sum({0, 5}).outer_count(), 0);
  EXPECT_EQ(exp_sum({0, 5}).inner_count(), 5);
  EXPECT_TRUE(pad_gather().is_map());
  KernelIR all = exp_sum();
  all.inner = 0;
  EXPECT_EQ(all.outer_count(), 1);
  EXPECT_EQ(all.inner_count(), 20);
}

TEST(KernelIR, PrintsOneInstructionALine) {
  EXPECT_EQ(to_string(exp_sum()),
            "kernel exp sum: extents (4, 5), inner 1\n"
            "  operand 0: in f16\n"
            "  operand 1: out f32\n"
            "  r0 = load 0 [0 + (5, 1)] : f32 elem\n"
            "  r1 = exp r0 : f32 elem\n"
            "  r2 = sum r1 : f32 row\n"
            "  store 1 [0 + (1, 0)] r2 : row\n");
  EXPECT_EQ(to_string(pad_gather()),
            "kernel pad gather: extents (6, 3), inner 1\n"
            "  operand 0: in f32\n"
            "  operand 1: in i64\n"
            "  operand 2: out bf16\n"
            "  r0 = constant -0.5 : f32 elem\n"
            "  r1 = load 1 [2 + (1, 0)] : i64 elem\n"
            "  r2 = load 0 [0 + (0, 1) + r1 in [0, 10) * 3] within [(1, 0), (5, 3)) else r0 : f32"
            " elem\n"
            "  r3 = cast(bf16) r2 : f32 elem\n"
            "  store 2 [0 + (3, 1)] r3 : elem\n");
}

TEST(KernelIR, NamesReductions) {
  EXPECT_EQ(name(ReduceOp::sum), "sum");
  EXPECT_EQ(name(ReduceOp::prod), "prod");
  EXPECT_EQ(name(ReduceOp::max), "max");
  EXPECT_EQ(name(ReduceOp::min), "min");
  EXPECT_EQ(name(ReduceOp::argmax), "argmax");
}

TEST(KernelKey, IgnoresNameAndOutermostExtent) {
  KernelIR other = exp_sum({900, 5});
  other.name = "something else";
  EXPECT_EQ(key(exp_sum()), key(other));
}

TEST(KernelKey, IgnoresFieldsTheKindDoesNotRead) {
  KernelIR other = exp_sum();
  other.insts[1].offset = 7;
  other.insts[1].bits = 7;
  other.insts[3].dtype = DType::i32;
  EXPECT_EQ(key(exp_sum()), key(other));
}

TEST(KernelKey, TellsEveryOtherFieldApart) {
  using Change = void (*)(KernelIR&);
  const Change changes[] = {
      [](KernelIR&) {},
      [](KernelIR& ir) { ir.extents[1] = 4; },
      [](KernelIR& ir) { ir.extents.push_back(1); },
      [](KernelIR& ir) { ir.inner = 0; },
      [](KernelIR& ir) { ir.operands[0].dtype = DType::f64; },
      [](KernelIR& ir) { ir.operands[0].is_output = true; },
      [](KernelIR& ir) { ir.add_operand(DType::f32, false); },
      [](KernelIR& ir) { ir.insts[0].kind = IrKind::index; },
      [](KernelIR& ir) { ir.insts[0].level = IrLevel::row; },
      [](KernelIR& ir) { ir.insts[0].dtype = DType::f64; },
      [](KernelIR& ir) { ir.insts[0].bits = 0; },
      [](KernelIR& ir) { ir.insts[1].operand = 0; },
      [](KernelIR& ir) { ir.insts[1].strides[0] = 2; },
      [](KernelIR& ir) { ir.insts[1].offset = 3; },
      [](KernelIR& ir) { ir.insts[1].masked = true; },
      [](KernelIR& ir) { ir.insts[2].low[0] = 0; },
      [](KernelIR& ir) { ir.insts[2].high[0] = 4; },
      [](KernelIR& ir) { ir.insts[2].args[1] = 0; },
      [](KernelIR& ir) { ir.insts[2].index_stride = 4; },
      [](KernelIR& ir) { ir.insts[2].index_limit = 4; },
      [](KernelIR& ir) { ir.insts[2].indexed = false; },
      [](KernelIR& ir) { ir.insts[3].round_to = DType::f16; },
      [](KernelIR& ir) { ir.insts[3].kind = IrKind::scalar; },
      [](KernelIR& ir) { ir.insts[3].kind = IrKind::scalar, ir.insts[3].op = ScalarOp::neg; },
      [](KernelIR& ir) { ir.insts[3].kind = IrKind::reduce; },
      [](KernelIR& ir) { ir.insts[3].kind = IrKind::reduce, ir.insts[3].reduce = ReduceOp::max; },
      [](KernelIR& ir) { ir.insts.pop_back(); },
  };
  std::set<std::string> keys;
  for (const Change change : changes) {
    KernelIR ir = pad_gather();
    change(ir);
    EXPECT_TRUE(keys.insert(key(ir)).second) << to_string(ir);
  }
}

TEST(Target, KnowsItsNamedKernels) {
  Target target;
  target.named_kernels = {"matmul", "copy"};
  EXPECT_TRUE(target.has("matmul"));
  EXPECT_TRUE(target.has("copy"));
  EXPECT_FALSE(target.has("mat"));
  EXPECT_FALSE(target.has(""));
}

TEST(Target, KnowsWhichOfThemTakeNoHalves) {
  Target target;
  target.named_kernels = {"matmul", "linear"};
  target.wide_kernels = {"linear"};
  for (const DType dtype : {DType::f32, DType::f64}) EXPECT_TRUE(target.has("linear", dtype));
  for (const DType dtype : {DType::f16, DType::bf16}) {
    EXPECT_FALSE(target.has("linear", dtype));
    EXPECT_TRUE(target.has("matmul", dtype));
    EXPECT_FALSE(target.has("copy", dtype));
  }
}

TEST(Target, KnowsWhatALongRowIs) {
  Target target;
  EXPECT_FALSE(target.is_long_row(DType::f32, 100)) << "it has none";
  target.long_row_columns = 16;
  target.long_row_bytes = 80;
  EXPECT_TRUE(target.is_long_row(DType::f32, 17));
  EXPECT_TRUE(target.is_long_row(DType::f32, 20));
  EXPECT_TRUE(target.is_long_row(DType::f16, 40));
  EXPECT_TRUE(target.is_long_row(DType::bf16, 17));
  EXPECT_FALSE(target.is_long_row(DType::f32, 16));
  EXPECT_FALSE(target.is_long_row(DType::f32, 21));
  EXPECT_FALSE(target.is_long_row(DType::bf16, 41));
  EXPECT_FALSE(target.is_long_row(DType::f64, 17));
  EXPECT_FALSE(target.is_long_row(DType::i32, 17));
}

}  // namespace
}  // namespace tessera
