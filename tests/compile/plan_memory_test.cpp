#include <gtest/gtest.h>

#include "compile/function_builder.h"

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

}  // namespace
}  // namespace tessera
