#include <gtest/gtest.h>

#include <algorithm>

#include "compile/function_builder.h"
#include "tessera/kernel/part_table.h"

namespace tessera {
namespace {

using namespace graph;

Value exp(const Value& x) { return apply(Op::exp, x); }
Value tanh(const Value& x) { return apply(Op::tanh, x); }
Value total(const Value& x, const Dims& axes) { return reduce(Op::sum, x, axes); }

constexpr int64_t kMiB = int64_t{1} << 20;

Target joining_target(int64_t words = 4000, int64_t memory_bytes = 64 * 64 * kMiB) {
  Target target = full_target();
  target.table_words = words;
  target.memory_bytes = memory_bytes;
  return target;
}

KernelGraph joined(const GraphFunction& f, const Target& target = joining_target()) {
  KernelGraph g = kernels_of(f);
  schedule(g);
  horizontal(g, target);
  EXPECT_EQ(verify_kernels(g), "");
  EXPECT_EQ(verify_program(plan_memory(g, 64)), "");
  return g;
}

std::vector<std::string> labels(const KernelGraph& g) {
  std::vector<std::string> result;
  for (const KernelNode& node : g.kernels) result.push_back(node.label);
  return result;
}
using Labels = std::vector<std::string>;

TEST(Horizontal, KernelsAlikeBecomeOneLaunch) {
  const Value a = leaf({7}), b = leaf({2, 3, 5}), c = leaf({3}), d = leaf({8}, DType::f64);
  const KernelGraph g = joined(function({a, b, c, d}, {exp(a), exp(b), exp(d), exp(c)}));
  EXPECT_EQ(labels(g), (Labels{"exp", "exp × 3"}));
  const KernelCall& call = g.kernels[1].call;
  EXPECT_EQ(call.parts, (std::vector<int64_t>{7, 30, 3}));
  EXPECT_EQ(call.outputs, 3);
  EXPECT_EQ(g.kernels[1].buffers[1], 1);  // the second part reads b
  EXPECT_EQ(call.operands[4].view.shape, Shape({2, 3, 5}));
  EXPECT_EQ(part_operand(call, 1).part, 1u);
  EXPECT_EQ(part_operand(call, 1).operand, 0u);
  EXPECT_EQ(part_operand(call, 5).part, 2u);
  EXPECT_EQ(part_operand(call, 5).operand, 1u);
}

TEST(Horizontal, SumsOfAnyLength) {
  const Value a = leaf({700}), b = leaf({20, 30});
  const KernelGraph g = joined(function({a, b}, {total(a * a, {0}), total(b * b, {0, 1})}));
  EXPECT_EQ(labels(g), (Labels{"mul_sum × 2"}));
  EXPECT_EQ(g.kernels[0].call.parts, (std::vector<int64_t>{700, 600}));
}

TEST(Horizontal, WhatOneNeedsOfAnotherComesBefore) {
  const Value a = leaf({7, 7}), w = leaf({7, 7});
  // Between two products that need each other's results, tanh is always alone.
  const Value once = tanh(matmul(a, w)), twice = tanh(matmul(once, w));
  const KernelGraph g = joined(function({a, w}, {once, twice}));
  EXPECT_EQ(std::ranges::count(labels(g), "tanh"), 2);
}

TEST(Horizontal, ReadersOfStorageComeBeforeWhatReplacesIt) {
  // Each assign replaces what the other's kernel reads: the second cannot go along.
  const Value a = leaf({7}), b = leaf({7}), c = leaf({7});
  const KernelGraph g = joined(function({a, b, c}, {}, {{0, a + b}, {1, b + c}}));
  EXPECT_EQ(labels(g), (Labels{"add", "add"}));
  EXPECT_EQ(g.assigns[0].buffer, 0);
  EXPECT_EQ(g.assigns[1].buffer, 1);
  const KernelGraph h = joined(function({a, b, c}, {}, {{0, a + c}, {1, b + c}}));
  EXPECT_EQ(labels(h), (Labels{"add × 2"}));
  EXPECT_EQ(h.assigns[0].buffer, 0);
  EXPECT_EQ(h.assigns[1].buffer, 1);
}

TEST(Horizontal, WaitsUntilAValueIsRead) {
  const Value a = leaf({7, 7}), b = leaf({9}), w = leaf({7, 7});
  const Value x = exp(a), y = matmul(x, w);
  const Value late = exp(b);
  const KernelGraph g = joined(function({a, b, w}, {y, late}));
  // b's is there by the time of the product in the order of the graph, or else alone behind it.
  const Labels all = labels(g);
  EXPECT_LT(std::ranges::find_if(all, [](auto& l) { return l.starts_with("exp"); }),
            std::ranges::find(all, "matmul"));
}

TEST(Horizontal, OneLaunchHasSoManyParts) {
  std::vector<Value> leaves, results;
  for (int i = 0; i < 11; ++i) {
    leaves.push_back(leaf({i + 2}));
    results.push_back(exp(leaves.back()));
  }
  const GraphFunction f = function(leaves, results);
  const int64_t words = 2 + 4;  // of a part
  EXPECT_EQ(labels(joined(f, joining_target(9 * words))), (Labels{"exp × 8", "exp × 3"}));
  EXPECT_EQ(labels(joined(f, joining_target(words))).size(), 11u);
}

TEST(Horizontal, TablesHaveFewSizes) {
  KernelIR ir;
  ir.operands.resize(12);
  for (const int64_t parts : {2, 3, 8, 31, 32, 33, 148, 1000}) {
    EXPECT_GE(table_capacity(parts), parts);
    EXPECT_EQ(table_capacity(table_capacity(parts)), table_capacity(parts));
  }
  EXPECT_EQ(table_capacity(148), 160);
  EXPECT_EQ(most_parts(ir, 100), 0);
  for (const int64_t words : {130, 400, 512, 4087}) {
    const int64_t most = most_parts(ir, words);
    EXPECT_LE(16 * table_capacity(most), words);
    EXPECT_GT(16 * table_capacity(most + 1), words);
  }
}

TEST(Horizontal, IndicesAreLookedUpOneByOne) {
  const Value table = leaf({5, 4}), i = leaf({3}, DType::i64), j = leaf({6}, DType::i64);
  const auto rows = [&](const Value& index) {
    const Value at = broadcast_to(reshape(index, {index.shape()[0], 1}), {index.shape()[0], 4});
    return gather(table, at, 0);
  };
  const KernelGraph g = joined(function({table, i, j}, {rows(i), rows(j)}));
  EXPECT_EQ(labels(g), (Labels{"gather", "gather"}));
}

// Products that are read once and by kernels alike: to wait for the last keeps all of them.
GraphFunction products(int count, int64_t n) {
  std::vector<Value> leaves = {leaf({n, n})}, results;
  for (int i = 0; i < count; ++i) {
    leaves.push_back(leaf({n, n}));
    results.push_back(total(exp(matmul(leaves.back(), leaves[0])), {0, 1}));
  }
  return function(leaves, results);
}

TEST(Horizontal, WaitingTakesLittleMemory) {
  const GraphFunction small = products(6, 512);  // 1 MiB each
  EXPECT_EQ(std::ranges::count(labels(joined(small)), "exp_sum × 6"), 1);
  // Room for two at a time.
  const KernelGraph g = joined(small, joining_target(4000, 64 * 2 * kMiB));
  EXPECT_EQ(std::ranges::count(labels(g), "exp_sum × 6"), 0);
  const int64_t alone = plan_memory(kernels_of(small), 64).arena_bytes;
  EXPECT_LE(plan_memory(g, 64).arena_bytes, alone + 2 * kMiB);
  // Such that one alone keeps the device busy do not wait.
  const GraphFunction large = products(2, 2100);
  EXPECT_EQ(std::ranges::count(labels(joined(large)), "exp_sum"), 2);
}

TEST(Horizontal, PartsTakeOverMemoryOfTheirOwn) {
  // The products die in the kernels that read them: each exp lies where its own product lay.
  const Value a = leaf({64, 64}), b = leaf({64, 64}), w = leaf({64, 64});
  const Value x = exp(matmul(a, w)), y = exp(matmul(b, w));
  const KernelGraph g = joined(function({a, b, w}, {matmul(x, y)}));
  ASSERT_EQ(std::ranges::count(labels(g), "exp × 2"), 1);
  const Program program = plan_memory(g, 64);
  for (const Instruction& instruction : program.instructions) {
    if (instruction.call.parts.empty()) continue;
    const auto offset = [&](size_t i) {
      return program.buffers[size_t(instruction.buffers[i])].offset;
    };
    EXPECT_EQ(offset(0), offset(2));
    EXPECT_EQ(offset(1), offset(3));
    EXPECT_NE(offset(0), offset(1));
    EXPECT_EQ(instruction.bytes, 4 * 64 * 64 * 4);
  }
}

TEST(Horizontal, IsAskedForByTheTargetAndTheOptions) {
  const Value a = leaf({7}), b = leaf({9});
  const GraphFunction f = function({a, b}, {exp(a), exp(b)});
  EXPECT_EQ(compile_graph(f, full_target()).report.kernels, 2);
  EXPECT_EQ(compile_graph(f, joining_target(), {.horizontal = false}).report.kernels, 2);
  const Program program = compile_graph(f, joining_target());
  EXPECT_EQ(program.report.kernels, 1);
  EXPECT_EQ(to_string(program).substr(0, 106),
            "#0 exp × 2 (external0 f32(7,) -> output0 f32(7,))\n"
            "  and (external1 f32(9,) -> output1 f32(9,))\n"
            "kernel exp");
}

}  // namespace
}  // namespace tessera
