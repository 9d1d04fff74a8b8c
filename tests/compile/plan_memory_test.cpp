#include <gtest/gtest.h>

#include <algorithm>

#include "compile/function_builder.h"
#include "tessera/graph/scope.h"

namespace tessera {
namespace {

using namespace graph;

Program planned(const GraphFunction& f) {
  CompileOptions options;
  options.verify = true;
  return compile_graph(f, full_target(), options);
}

TEST(PlanMemory, ReusesWhatIsDead) {
  const Value x = leaf({64, 64});
  Value y = x;
  for (int i = 0; i < 20; ++i) y = matmul(y, x);
  const Program p = planned(function({x}, {y}));
  EXPECT_EQ(p.arena_bytes, 2 * 64 * 64 * 4);
  EXPECT_EQ(p.report.temporary_bytes, p.arena_bytes);
}

TEST(PlanMemory, MapsTakeOverTheirInputs) {
  const Value x = leaf({64, 64});
  Value y = x;
  for (int i = 0; i < 5; ++i) y = apply(Op::exp, matmul(y, x));
  const Program p = planned(function({x}, {y}));
  // A product beside its operand; each exp works in the product's own memory.
  EXPECT_EQ(p.arena_bytes, 2 * 64 * 64 * 4);
}

TEST(PlanMemory, OffsetsAreAligned) {
  const Value x = leaf({3, 3});
  std::vector<Value> outs;
  for (int i = 0; i < 5; ++i) outs.push_back(matmul(matmul(x, x + double(i)), x));
  const Program p = planned(function({x}, outs));
  for (const PlannedBuffer& b : p.buffers) EXPECT_EQ(b.offset % 64, 0);
}

TEST(PlanMemory, UpdatesRunInPlaceWhenTheirInputDies) {
  const Value x = leaf({64, 64}), u = leaf({1, 64}), at = leaf({}, DType::i64);
  Value y = matmul(x, x);
  for (int i = 0; i < 4; ++i) y = dynamic_update_slice(y, u, at, 0);
  const Program p = planned(function({x, u, at}, {matmul(y, x)}));
  EXPECT_EQ(p.arena_bytes, 64 * 64 * 4);
}

TEST(PlanMemory, AssignsThatCannotBeDonatedAreCopiedAtTheEnd) {
  const Value w = leaf({8, 8});
  const Program p = planned(function({w}, {}, {{0, swap_last(w) + 1.0}}));
  EXPECT_EQ(p.report.donated, 0);
  EXPECT_EQ(p.report.copies, 1);
  const Instruction& last = p.instructions.back();
  EXPECT_EQ(last.call.kernel, "copy");
  EXPECT_EQ(last.lane, Lane::copy);
  EXPECT_EQ(last.waits, (std::vector<int>{0}));
  EXPECT_EQ(p.buffers[size_t(last.buffers[1])].kind, BufferKind::external);
  EXPECT_NE(to_string(p).find("assign [copy] (temp1@0 "), std::string::npos) << to_string(p);
}

TEST(PlanMemory, ReportCountsBytesOnce) {
  const Value x = leaf({10, 10}), row = leaf({1, 10});
  const Program p = planned(function({x, row}, {x + row}));
  EXPECT_EQ(p.report.kernels, 1);
  EXPECT_EQ(p.report.generated, 1);
  EXPECT_EQ(p.report.nodes, 2);  // expand, add
  EXPECT_EQ(p.report.bytes_moved, (100 + 10 + 100) * 4);
  EXPECT_EQ(p.report.external_bytes, 110 * 4);
  EXPECT_EQ(p.report.output_bytes, 100 * 4);
  EXPECT_EQ(p.report.temporary_bytes, 0);
}

TEST(PlanMemory, ReportCountsWhatAnAccessTouches) {
  const Value x = leaf({1000, 1000});
  auto moved = [](const GraphFunction& f) { return planned(f).report.bytes_moved; };
  const Value rows = slice(x, {0, 0}, {10, 1000}, {1, 1});
  EXPECT_EQ(moved(function({x}, {rows + 1.0})), 2 * 10 * 1000 * 4);
  EXPECT_EQ(moved(function({x}, {pad(rows, {1, 0}, {0, 0}, 0)})), (10 + 11) * 1000 * 4);
  const Value index = leaf({7, 1000}, DType::i64);
  EXPECT_EQ(moved(function({x, index}, {gather(x, index, 0)})), 7 * 1000 * (4 + 8 + 4));
  EXPECT_EQ(moved(function({x}, {reduce(Op::sum, x, {1})})), (1000 * 1000 + 1000) * 4);
}

TEST(PlanMemory, PeakIsBrokenDown) {
  const Value x = leaf({64, 64});
  const Value a = matmul(x, x), b = matmul(a, x);
  const Program p = planned(function({x}, {matmul(a, b)}));
  ASSERT_EQ(p.report.at_peak.size(), 2u);
  EXPECT_EQ(p.report.at_peak[0].label, "matmul f32(64, 64)");
  EXPECT_EQ(p.report.at_peak[0].bytes, 64 * 64 * 4);
  std::vector<Value> products;
  for (int i = 0; i < 12; ++i) products.push_back(matmul(x, x + double(i)));
  Value all = products[0];
  for (const Value& product : products) all = matmul(all, product);
  const Report many = planned(function({x}, {all})).report;
  int64_t listed = 0;
  for (const MemoryItem& item : many.at_peak) listed += item.bytes;
  EXPECT_LE(many.at_peak.size(), 9u);
  EXPECT_LE(listed, many.temporary_bytes);
  const std::string text = to_string(p.report);
  for (const char* word : {"nodes", "kernels", "bytes moved", "copies", "at peak", "16.0 KiB"}) {
    EXPECT_NE(text.find(word), std::string::npos) << word << " in\n" << text;
  }
}

constexpr int64_t kMatrix = 64 * 64 * 4;

// Two products that both live while a third is made; the output has memory of the caller's.
Program scoped_program() {
  const Value x = leaf({64, 64});
  Value a, b;
  {
    const Scope scope("first");
    a = matmul(x, x);
  }
  {
    const Scope scope("second");
    b = matmul(a, x);
  }
  return planned(function({x}, {matmul(a, b)}));
}

TEST(MemoryTimeline, HasTheBytesAliveAtEachInstruction) {
  const Program p = scoped_program();
  const Report& report = p.report;
  EXPECT_EQ(report.timeline, (std::vector<int64_t>{kMatrix, 2 * kMatrix, 2 * kMatrix}));
  EXPECT_EQ(report.peak_bytes, 2 * kMatrix);
  EXPECT_EQ(report.peak_at, 1) << "the first instruction that reaches it";
  ASSERT_EQ(report.peak_by_scope.size(), 2u);
  EXPECT_EQ(report.peak_by_scope[0].scope, "first");
  EXPECT_EQ(report.peak_by_scope[0].bytes, kMatrix);
  EXPECT_EQ(report.peak_by_scope[1].scope, "second");
  EXPECT_EQ(report.at_peak[0].scope, "first");
  EXPECT_NE(to_string(report).find("matmul f32(64, 64) in first\n"), std::string::npos);
}

TEST(MemoryTimeline, CountsMemoryThatIsTakenOverOnce) {
  const Value x = leaf({64, 64});
  Value y = x;
  for (int i = 0; i < 3; ++i) y = apply(Op::exp, matmul(y, x));
  const Report report = planned(function({x}, {y})).report;
  EXPECT_EQ(report.peak_bytes, 2 * kMatrix);
  EXPECT_EQ(report.timeline,
            (std::vector<int64_t>{kMatrix, kMatrix, 2 * kMatrix, kMatrix, 2 * kMatrix, kMatrix}));
}

TEST(MemoryTimeline, GoesOnWhileAssignsAreCopied) {
  const Value w = leaf({8, 8});
  const Program p = planned(function({w}, {}, {{0, swap_last(w) + 1.0}}));
  EXPECT_EQ(p.report.timeline, (std::vector<int64_t>{256, 256}));
}

TEST(MemoryTimeline, SumsUpToThePeakWhateverTheProgram) {
  const Value x = leaf({16, 16});
  std::vector<Value> products;
  for (int i = 0; i < 100; ++i) products.push_back(matmul(x, x + double(i)));
  Value all = products[0];
  for (const Value& product : products) all = matmul(all, product);
  const Program p = planned(function({x}, {all}));
  ASSERT_EQ(p.report.timeline.size(), p.instructions.size());
  EXPECT_EQ(*std::ranges::max_element(p.report.timeline), p.report.peak_bytes);
  EXPECT_EQ(p.report.timeline[size_t(p.report.peak_at)], p.report.peak_bytes);
  EXPECT_LE(p.report.peak_bytes, p.arena_bytes);
  int64_t by_scope = 0, moved = 0;
  for (const ScopeBytes& item : p.report.peak_by_scope) by_scope += item.bytes;
  EXPECT_EQ(by_scope, p.report.peak_bytes);
  for (const Instruction& instruction : p.instructions) moved += instruction.bytes;
  EXPECT_EQ(moved, p.report.bytes_moved);
  const std::string text = memory_text(p);
  EXPECT_NE(text.find("  #0-#"), std::string::npos) << text;
  EXPECT_LE(std::ranges::count(text, '\n'), 40) << text;
}

TEST(MemoryTimeline, IsAChartAndATable) {
  const std::string text = memory_text(scoped_program());
  EXPECT_TRUE(
      text.starts_with("temporaries    32.0 KiB in the arena, at most 32.0 KiB alive at "
                       "once: while #1 matmul (in second, plan_memory_test.cpp:"))
      << text;
  EXPECT_NE(text.find("\n  #0             16.0 KiB  " + std::string(20, '#') +
                      std::string(20, ' ') + "  matmul\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("\n  #1             32.0 KiB  " + std::string(40, '#') + "  matmul\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("\npeak by scope\n    16.0 KiB   50 %  first\n    16.0 KiB   50 %  second\n"),
            std::string::npos)
      << text;
}

TEST(MemoryTimeline, OfNoTemporaries) {
  const Value x = leaf({4});
  const Program p = planned(function({x}, {x + 1.0}));
  EXPECT_EQ(p.report.timeline, (std::vector<int64_t>{0}));
  EXPECT_EQ(p.report.peak_at, -1);
  EXPECT_EQ(memory_text(p), "temporaries    0 B in the arena\n");
}

TEST(PassTimes, NameEveryPassInOrder) {
  const Value x = leaf({4, 4});
  const Report report = planned(function({x}, {matmul(x, x)})).report;
  std::vector<std::string> names;
  for (const PassTime& time : report.passes) {
    names.emplace_back(time.pass);
    EXPECT_GE(time.nanoseconds, 0);
  }
  EXPECT_EQ(names.front(), "lower");
  EXPECT_EQ(names.back(), "plan_memory");
  EXPECT_NE(std::ranges::find(names, "fuse"), names.end());
}

}  // namespace
}  // namespace tessera
