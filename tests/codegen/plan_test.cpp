#include "tessera/codegen/plan.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "codegen/zoo.h"
#include "kernel/ir_builder.h"

namespace tessera {
namespace {

constexpr RenderOptions kAligned = {.alignment = 16};

// y = x + b, of (n, cols), where x starts at `offset` and b is one row.
KernelIR add_row(DType dtype, int64_t cols, int64_t offset) {
  IrBuilder b("add", {4, cols}, 1);
  const int x = b.in(dtype), row = b.in(dtype), y = b.out(dtype);
  const int sum = b.scalar(ScalarOp::add, {b.load(x, {cols, 1}, offset), b.load(row, {0, 1})});
  b.store(y, {cols, 1}, sum);
  return b.build();
}

TEST(Plan, TakesSixteenBytesAtATime) {
  EXPECT_EQ(make_plan(add_row(DType::f32, 64, 0), kAligned).width, 4);
  EXPECT_EQ(make_plan(add_row(DType::f64, 64, 0), kAligned).width, 2);
  EXPECT_EQ(make_plan(add_row(DType::bf16, 64, 0), kAligned).width, 8);
  EXPECT_EQ(make_plan(add_row(DType::i8, 64, 0), kAligned).width, 8);
  EXPECT_EQ(make_plan(add_row(DType::f32, 64, 0), {}).width, 1);
}

TEST(Plan, TakesFewerWhereTheRowDoesNotDivide) {
  EXPECT_EQ(make_plan(add_row(DType::f32, 6, 0), kAligned).width, 2);
  EXPECT_EQ(make_plan(add_row(DType::f32, 7, 0), kAligned).width, 1);
}

TEST(Plan, TakesFewerWhereRegistersWouldRunOut) {
  IrBuilder b("many", {64}, 0);
  const int v = b.load(b.in(DType::f32), {1});
  for (int i = 0; i < 20; ++i) b.store(b.out(DType::f32), {1}, v);
  EXPECT_EQ(make_plan(b.build(), kAligned).width, 2);  // 21 accesses of 16 bytes are too much
}

TEST(Plan, ReadsScalarsWhereAnOperandIsNotAligned) {
  const Plan plan = make_plan(add_row(DType::f32, 64, 1), kAligned);
  EXPECT_EQ(plan.width, 4);
  EXPECT_EQ(plan.wide, (std::vector<bool>{false, true, false, true}));
}

TEST(Plan, LeavesATailOfRunTimeExtents) {
  const Plan plan = make_plan(golden_kernels()[8], kAligned);  // (extent0)
  EXPECT_EQ(plan.width, 8);
  EXPECT_TRUE(plan.has_tail);
  EXPECT_FALSE(make_plan(add_row(DType::f32, 64, 0), kAligned).has_tail);
}

struct RowPlan {
  int group_size, parts, chunks;
  bool operator==(const RowPlan&) const = default;
};

TEST(Plan, FitsLanesToTheRow) {
  const auto plan_of = [](int64_t cols, int largest) {
    const Plan plan = make_plan(softmax_kernel(DType::f32, 4, cols),
                                {.max_group_size = largest, .alignment = 16});
    EXPECT_EQ(plan.spread, Spread::rows);
    return RowPlan{plan.group_size, plan.parts, plan.chunks};
  };
  EXPECT_EQ(plan_of(1, 256), (RowPlan{256, 1, 1}));
  EXPECT_EQ(plan_of(3, 256), (RowPlan{256, 4, 1}));
  EXPECT_EQ(plan_of(64, 256), (RowPlan{256, 16, 1}));
  EXPECT_EQ(plan_of(768, 256), (RowPlan{256, 32, 6}));
  EXPECT_EQ(plan_of(2048, 256), (RowPlan{256, 256, 2}));
  EXPECT_EQ(plan_of(8192, 256), (RowPlan{256, 256, 8}));
  EXPECT_EQ(plan_of(100000, 256), (RowPlan{256, 256, 0}));  // read again
  EXPECT_EQ(plan_of(8192, 8), (RowPlan{8, 8, 0}));
  EXPECT_EQ(plan_of(8, 1), (RowPlan{1, 1, 2}));
}

TEST(Plan, HoldsLongRowsByManyLanesOrInLocalMemory) {
  const auto plan_of = [](DType dtype, int64_t cols) {
    return make_plan(softmax_kernel(dtype, 4, cols),
                     {.max_row_group = 1024, .local_bytes = 200 << 10, .alignment = 16});
  };
  const Plan held = plan_of(DType::f32, 16384);
  EXPECT_EQ((RowPlan{held.group_size, held.parts, held.chunks}), (RowPlan{512, 512, 8}));
  EXPECT_EQ(held.row_bytes, 0);
  const Plan even = plan_of(DType::f32, 32768);
  EXPECT_EQ((RowPlan{even.group_size, even.parts, even.chunks}), (RowPlan{1024, 1024, 0}));
  EXPECT_EQ(even.row_bytes, 4 * 32768);
  EXPECT_EQ(even.shifted, -1);
  const Plan odd = plan_of(DType::bf16, 50257);
  EXPECT_EQ(odd.width, 8);
  EXPECT_GE(odd.shifted, 0);
  EXPECT_EQ(odd.row_bytes, 2 * (50257 + 16) / 16 * 16 + 16);
  EXPECT_EQ(plan_of(DType::f32, 100000).row_bytes, 0);  // read again
}

TEST(Plan, LetsClustersShareWhatOneGroupCannotHold) {
  RenderOptions options = {
      .max_row_group = 1024, .local_bytes = 200 << 10, .cluster_groups = 8, .alignment = 16};
  const auto plan_of = [&](const KernelIR& ir) { return make_plan(ir, options); };
  const Plan alone = plan_of(softmax_kernel(DType::f32, 4, 16384));
  EXPECT_EQ((RowPlan{alone.group_size, alone.parts, alone.chunks}), (RowPlan{512, 512, 8}));
  EXPECT_EQ(alone.cluster, 1);

  const Plan even = plan_of(softmax_kernel(DType::f32, 4, 32768));
  EXPECT_EQ((RowPlan{even.group_size, even.parts, even.chunks}), (RowPlan{512, 1024, 8}));
  EXPECT_EQ(even.cluster, 2);
  EXPECT_EQ(even.row_bytes, 0);
  EXPECT_EQ(even.rows_per_group(), 1);

  EXPECT_EQ(plan_of(softmax_kernel(DType::f32, 4, 50257)).cluster, 1);
  options.narrow_index = true;
  const Plan odd = plan_of(softmax_kernel(DType::f32, 4, 50257));
  EXPECT_EQ((RowPlan{odd.group_size, odd.parts, odd.chunks}), (RowPlan{512, 2048, 25}));
  EXPECT_EQ(odd.width, 1);
  EXPECT_EQ(odd.shifted, -1);

  // What local memory holds stays there where it is of halves, or begins anywhere beside others.
  EXPECT_EQ(plan_of(layer_norm_kernel(DType::f32, 4, 32768)).cluster, 2);
  EXPECT_EQ(plan_of(layer_norm_kernel(DType::f32, 4, 50257)).cluster, 1);
  EXPECT_EQ(plan_of(softmax_kernel(DType::bf16, 4, 32768)).cluster, 1);
  EXPECT_EQ(plan_of(softmax_kernel(DType::bf16, 4, 131072)).cluster, 8);

  // Two arrays alive at once take twice the registers.
  IrBuilder b("max sub exp sum div add", {4, 32768}, 1);
  const int x = b.in(DType::f32), y = b.out(DType::f32);
  const int v = b.load(x, {32768, 1});
  const int e = b.scalar(ScalarOp::exp, {b.scalar(ScalarOp::sub, {v, b.reduce(ReduceOp::max, v)})});
  const int share = b.scalar(ScalarOp::div, {e, b.reduce(ReduceOp::sum, e)});
  b.store(y, {32768, 1}, b.scalar(ScalarOp::add, {v, share}));
  EXPECT_EQ(plan_of(b.build()).cluster, 4);

  EXPECT_EQ(plan_of(softmax_kernel(DType::f32, 4, 131072)).cluster, 8);
  EXPECT_EQ(plan_of(softmax_kernel(DType::f32, 4, 131076)).cluster, 1);
  EXPECT_EQ(plan_of(norm_kernel(DType::f32)).cluster, 1);  // read once
  options.parts = 4;
  EXPECT_EQ(plan_of(softmax_kernel(DType::f32, 4, 32768)).cluster, 1);
}

TEST(Plan, LetsNeighboursTakeColumns) {
  const Plan plan = make_plan(golden_kernels()[5], {});  // sums 300 of each column
  EXPECT_EQ(plan.spread, Spread::columns);
  EXPECT_EQ(plan.parts, 8);
  EXPECT_EQ(plan.rows_per_group(), 32);
}

TEST(Plan, SplitsWhatFoldsOnce) {
  EXPECT_TRUE(can_split(norm_kernel(DType::f32)));
  EXPECT_TRUE(can_split(golden_kernels()[5]));
  EXPECT_FALSE(can_split(softmax_kernel(DType::f32, 4, 100)));
  EXPECT_FALSE(can_split(golden_kernels()[0]));

  const KernelIR whole = norm_kernel(DType::f32);
  EXPECT_EQ(split_count(whole, 1000, 512), 1);  // too little to do
  EXPECT_EQ(split_count(whole, 1 << 16, 512), 16);
  EXPECT_EQ(split_count(whole, 1 << 30, 512), 512);
  EXPECT_EQ(split_count(whole, 1 << 18, 512, 1 << 14), 64);  // few groups: as before
  EXPECT_EQ(split_count(whole, 1 << 20, 512, 1 << 14), 128);
  EXPECT_EQ(split_count(whole, 1 << 22, 512, 1 << 14), 256);
  EXPECT_EQ(split_count(whole, 1 << 30, 512, 1 << 14), 512);
  EXPECT_EQ(split_count(golden_kernels()[5], 64, 512), 2);
  EXPECT_EQ(split_count(softmax_kernel(DType::f32, 4, 100000), 4, 512), 1);
}

TEST(Plan, KnowsWhere32BitsSuffice) {
  const KernelIR ir = add_row(DType::f32, 1024, 0);
  EXPECT_TRUE(fits_narrow_index(ir, 0));
  EXPECT_TRUE(fits_narrow_index(ir, 1 << 20));
  EXPECT_FALSE(fits_narrow_index(ir, (1 << 20) + 1));
  EXPECT_FALSE(fits_narrow_index(ir, int64_t{1} << 62));
  IrBuilder b("copy", {4}, 0);
  b.store(b.out(DType::f32), {1}, b.load(b.in(DType::f32), {-(1 << 28)}, 3 << 28));
  EXPECT_TRUE(fits_narrow_index(b.build(), 4));
  EXPECT_FALSE(fits_narrow_index(b.build(), 20));
}

}  // namespace
}  // namespace tessera
