#include <gtest/gtest.h>

#include <bit>

#include "kernel/ir_builder.h"
#include "tessera/kernel/kernel_ir.h"

namespace tessera {
namespace {

// y[i, j] = exp(x[i, j] - max_j x[i, j]) · scale[i], m[i] = max; every kind of instruction occurs.
KernelIR rows() {
  IrBuilder b("rows", {4, 5}, 1);
  const int x = b.in(DType::f16), scale = b.in(DType::f32);
  const int y = b.out(DType::bf16), m = b.out(DType::f32);
  const int v = b.load(x, {5, 1});                       // 0
  const int top = b.reduce(ReduceOp::max, v);            // 1
  const int d = b.scalar(ScalarOp::sub, {v, top});       // 2
  const int e = b.scalar(ScalarOp::exp, {d});            // 3
  const int s = b.load(scale, {1, 0}, 0, IrLevel::row);  // 4
  const int p = b.scalar(ScalarOp::mul, {e, s});         // 5
  const int r = b.cast(p, DType::bf16);                  // 6
  b.store(y, {5, 1}, r);                                 // 7
  b.store(m, {1, 0}, top);                               // 8
  return b.build();
}

// Out of range coordinates give zero; the row comes from an index.
KernelIR gather() {
  IrBuilder b("gather", {6, 3}, 1);
  const int x = b.in(DType::f32), index = b.in(DType::i64), y = b.out(DType::f32);
  const int zero = b.constant(DType::f32, 0);                                       // 0
  const int i = b.load(index, {1, 0});                                              // 1
  const int v = b.load_masked_indexed(x, {0, 1}, {1, 0}, {5, 3}, zero, i, 3, 10);   // 2
  const int u = b.scalar(ScalarOp::uniform, {b.index({3, 1}), i, i});               // 4
  const int w = b.scalar(ScalarOp::where, {b.scalar(ScalarOp::lt, {u, v}), u, v});  // 6
  b.store(y, {3, 1}, w);                                                            // 7
  return b.build();
}

struct Violation {
  KernelIR (*make)();
  void (*change)(KernelIR&);
  const char* expected;
};

const Violation kViolations[] = {
    {rows, [](KernelIR& ir) { ir.extents = {}; }, "rank must be at least 1"},
    {rows, [](KernelIR& ir) { ir.inner = 2; }, "inner must lie in [0, 2), got 2"},
    {rows, [](KernelIR& ir) { ir.inner = -1; }, "inner must lie in [0, 2), got -1"},
    {rows, [](KernelIR& ir) { ir.extents[0] = -1; }, "extent 0 must be at least 0, got -1"},
    {rows, [](KernelIR& ir) { ir.extents[1] = 0; }, "extent 1 must be at least 1, got 0"},
    {rows,
     [](KernelIR& ir) {
       ir.extents = {int64_t{1} << 40, int64_t{1} << 40};
     },
     "the domain has more than 2^63 - 1 points"},
    {gather, [](KernelIR& ir) { ir.inner = 0; },
     "a map has inner = rank - 1, got inner 0 of rank 2"},
    {gather, [](KernelIR& ir) { ir.insts[0].level = IrLevel::row; },
     "instruction 0 (constant): a map has elem level only"},
    {rows, [](KernelIR& ir) { ir.insts[0].dtype = DType::f16; },
     "instruction 0 (load): a register holds a compute type, got f16"},
    {rows, [](KernelIR& ir) { ir.insts[7].masked = true; },
     "instruction 7 (store): only a load may be masked or indexed"},
    {rows, [](KernelIR& ir) { ir.insts[3].indexed = true; },
     "instruction 3 (exp): only a load may be masked or indexed"},
    {rows, [](KernelIR& ir) { ir.insts[2].args[1] = 2; },
     "instruction 2 (sub): args[1] must be a register in [0, 2), got 2"},
    {rows, [](KernelIR& ir) { ir.insts[2].args[0] = -1; },
     "instruction 2 (sub): args[0] must be a register in [0, 2), got -1"},
    {rows, [](KernelIR& ir) { ir.insts[3].args[1] = 0; },
     "instruction 3 (exp): args[1] is not used and must be -1, got 0"},
    {rows, [](KernelIR& ir) { ir.insts[8].args[0] = 7; },
     "instruction 8 (store): args[0] is a store, which defines no register"},
    {rows, [](KernelIR& ir) { ir.insts[8].args[0] = 3; },
     "instruction 8 (store): row level reads elem register 3"},
    {rows, [](KernelIR& ir) { ir.insts[5].level = IrLevel::row; },
     "instruction 5 (mul): row level reads elem register 3"},
    {gather, [](KernelIR& ir) { ir.insts[0].bits = std::bit_cast<uint64_t>(0.1); },
     "instruction 0 (constant): bits are not a value of f32"},
    {rows, [](KernelIR& ir) { ir.insts[0].strides = {5}; },
     "instruction 0 (load): expected 2 strides, got (5,)"},
    {rows,
     [](KernelIR& ir) {
       ir.insts[7].strides = {5, 1, 1};
     },
     "instruction 7 (store): expected 2 strides, got (5, 1, 1)"},
    {rows,
     [](KernelIR& ir) {
       ir.insts[4].strides = {1, 1};
     },
     "instruction 4 (load): row level has inner strides 0, got (1, 1)"},
    {rows,
     [](KernelIR& ir) {
       ir.insts[8].strides = {1, 1};
     },
     "instruction 8 (store): row level has inner strides 0, got (1, 1)"},
    {gather, [](KernelIR& ir) { ir.insts[3].dtype = DType::i32; },
     "instruction 3 (index): an index is i64, got i32"},
    {gather, [](KernelIR& ir) { ir.insts[3].strides = {}; },
     "instruction 3 (index): expected 2 strides, got ()"},
    {rows, [](KernelIR& ir) { ir.insts[0].operand = 4; },
     "instruction 0 (load): operand must lie in [0, 4), got 4"},
    {rows, [](KernelIR& ir) { ir.insts[8].operand = -1; },
     "instruction 8 (store): operand must lie in [0, 4), got -1"},
    {rows, [](KernelIR& ir) { ir.insts[0].operand = 3; },
     "instruction 0 (load): operand 3 is an output and cannot be loaded"},
    {rows, [](KernelIR& ir) { ir.insts[8].operand = 1; },
     "instruction 8 (store): operand 1 is an input and cannot be stored"},
    {rows, [](KernelIR& ir) { ir.operands[0].dtype = DType::f64; },
     "instruction 0 (load): operand 0 is f64, got a register of f32"},
    {rows, [](KernelIR& ir) { ir.operands[2].dtype = DType::i32; },
     "instruction 7 (store): operand 2 is i32, got a register of f32"},
    {rows, [](KernelIR& ir) { ir.insts[8].operand = 2; },
     "instruction 8 (store): operand 2 is stored twice"},
    {rows, [](KernelIR& ir) { ir.insts.pop_back(); }, "output operand 3 is never stored"},
    {gather, [](KernelIR& ir) { ir.insts[2].args[0] = -1; },
     "instruction 2 (load): args[0] must be a register in [0, 2), got -1"},
    {gather, [](KernelIR& ir) { ir.insts[2].args[1] = -1; },
     "instruction 2 (load): args[1] must be a register in [0, 2), got -1"},
    {gather, [](KernelIR& ir) { ir.insts[2].args[0] = 1; },
     "instruction 2 (load): the value beside the mask must be f32, got i64"},
    {gather, [](KernelIR& ir) { ir.insts[2].args[1] = 0; },
     "instruction 2 (load): the index register must be i64, got f32"},
    {gather, [](KernelIR& ir) { ir.insts[2].index_limit = -1; },
     "instruction 2 (load): index_limit must be at least 0, got -1"},
    {gather, [](KernelIR& ir) { ir.insts[2].low = {1}; },
     "instruction 2 (load): expected masks of rank 2, got (1,) and (5, 3)"},
    {gather, [](KernelIR& ir) { ir.insts[2].high = {}; },
     "instruction 2 (load): expected masks of rank 2, got (1, 0) and ()"},
    {gather, [](KernelIR& ir) { ir.insts[4].dtype = DType::f64; },
     "instruction 4 (uniform): uniform yields f32, got f64"},
    {gather, [](KernelIR& ir) { ir.insts[4].args[2] = 2; },
     "instruction 4 (uniform): args[2] must be i64, got f32"},
    {gather, [](KernelIR& ir) { ir.insts[6].args[0] = 4; },
     "instruction 6 (where): args[0] must be bool, got f32"},
    {gather, [](KernelIR& ir) { ir.insts[6].args[1] = 3; },
     "instruction 6 (where): args[1] must be f32, got i64"},
    {gather, [](KernelIR& ir) { ir.insts[5].args[1] = 3; },
     "instruction 5 (lt): args[1] must be f32, got i64"},
    {gather, [](KernelIR& ir) { ir.insts[5].dtype = DType::f32; },
     "instruction 5 (lt): yields bool, got a register of f32"},
    {gather, [](KernelIR& ir) { ir.insts[5].op = ScalarOp::logical_and; },
     "instruction 5 (logical_and): does not take f32"},
    {rows, [](KernelIR& ir) { ir.insts[3].dtype = DType::f64; },
     "instruction 3 (exp): yields f32, got a register of f64"},
    {rows, [](KernelIR& ir) { ir.insts[6].round_to = DType::i32; },
     "instruction 6 (cast): a value rounded to i32 is held as i32, got a register of f32"},
    {rows, [](KernelIR& ir) { ir.insts[1].level = IrLevel::elem; },
     "instruction 1 (max): a reduce yields row level"},
    {rows,
     [](KernelIR& ir) {
       ir.insts[0].level = IrLevel::row, ir.insts[0].strides = {5, 0};
     },
     "instruction 1 (max): a reduce reads elem level"},
    {rows, [](KernelIR& ir) { ir.insts[1].reduce = ReduceOp::argmax; },
     "instruction 1 (argmax): yields i64, got a register of f32"},
    {rows,
     [](KernelIR& ir) {
       ir.operands[0].dtype = ir.insts[0].dtype = DType::boolean;
       ir.insts[1].reduce = ReduceOp::sum;
     },
     "instruction 1 (sum): does not take bool"},
};

TEST(Verify, AcceptsWellFormedKernels) {
  EXPECT_EQ(verify(rows()), "");
  EXPECT_EQ(verify(gather()), "");
}

TEST(Verify, SaysWhatIsWrong) {
  for (const Violation& violation : kViolations) {
    KernelIR ir = violation.make();
    violation.change(ir);
    EXPECT_EQ(verify(ir), violation.expected) << to_string(ir);
  }
}

TEST(Verify, RefusesARowMaskOverInnerDimensions) {
  KernelIR ir = rows();
  ir.insts.insert(ir.insts.begin(), IrBuilder::make(IrKind::constant, IrLevel::row));
  for (IrInst& inst : ir.insts) {
    for (int& arg : inst.args) arg += arg >= 0 ? 1 : 0;
  }
  IrInst& load = ir.insts[5];
  load.masked = true;
  load.args[0] = 0;
  load.low = {0, 0};
  load.high = {2, 5};
  EXPECT_EQ(verify(ir), "");
  load.high = {2, 4};
  EXPECT_EQ(verify(ir), "instruction 5 (load): row level cannot mask inner dimension 1");
}

TEST(Verify, TakesAnEmptyDomainAndNaNs) {
  KernelIR ir = rows();
  ir.extents[0] = 0;
  EXPECT_EQ(verify(ir), "");
  ir = gather();
  ir.insts[0].bits = 0x7ff8000000000001u;
  EXPECT_EQ(verify(ir), "");
}

TEST(Verify, FoldsBoolsByOrderOnly) {
  IrBuilder b("any", {4, 5}, 1);
  const int x = b.in(DType::boolean), y = b.out(DType::boolean);
  b.store(y, {1, 0}, b.reduce(ReduceOp::max, b.load(x, {5, 1})));
  EXPECT_EQ(verify(b.build()), "");
}

}  // namespace
}  // namespace tessera
