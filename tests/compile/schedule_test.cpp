#include <gtest/gtest.h>

#include <algorithm>

#include "compile/function_builder.h"

namespace tessera {
namespace {

using namespace graph;

KernelGraph scheduled(const GraphFunction& f) {
  KernelGraph g = kernels_of(f);
  schedule(g);
  EXPECT_EQ(verify_kernels(g), "");
  return g;
}

int position(const KernelGraph& g, const std::string& label) {
  for (size_t i = 0; i < g.kernels.size(); ++i) {
    if (g.kernels[i].label == label) return int(i);
  }
  return -1;
}

TEST(Schedule, WritersOfStorageComeAfterItsReaders) {
  const Value w = leaf({8, 8}), x = leaf({8, 8});
  // The assign is built first and ready first; two readers of the old value come later.
  const Value next = w * 2.0;
  const Value a = matmul(x, swap_last(w));
  const Value b = matmul(a, w);
  const KernelGraph g = scheduled(function({w, x}, {b}, {{0, next}}));
  EXPECT_EQ(g.assigns[0].buffer, g.assigns[0].external);
  EXPECT_EQ(position(g, "mul"), int(g.kernels.size()) - 1);
  EXPECT_EQ(g.after[g.kernels.size() - 1].size(), 2u);
}

TEST(Schedule, DoesNotDonateWhenTheOldValueIsNeededAfterTheNew) {
  const Value w = leaf({8, 8});
  const Value next = matmul(w, w);
  const Value both = matmul(next, w);  // needs new and old at once
  const KernelGraph g = scheduled(function({w}, {both}, {{0, next}}));
  EXPECT_NE(g.assigns[0].buffer, g.assigns[0].external);
}

TEST(Schedule, DoesNotDonateIntoWhatTheWriterReadsElsewhere) {
  const Value w = leaf({8, 8});
  const KernelGraph g = scheduled(function({w}, {}, {{0, swap_last(w) + 1.0}}));
  EXPECT_NE(g.assigns[0].buffer, g.assigns[0].external);
  const KernelGraph h = scheduled(function({w}, {}, {{0, w + 1.0}}));
  EXPECT_EQ(h.assigns[0].buffer, h.assigns[0].external);
}

TEST(Schedule, RunsWhatFreesMemoryFirst) {
  // Two branches make large values that reduce to small ones: each is reduced before the next is
  // made.
  const Value x = leaf({256, 256});
  std::vector<Value> sums;
  std::vector<Value> larges;
  for (int i = 0; i < 4; ++i) larges.push_back(matmul(x + double(i), x));
  for (const Value& large : larges)
    sums.push_back(matmul(matmul(full({DType::f32, {1, 256}}, 1), large), x));
  KernelGraph g = scheduled(function({x}, sums));
  const Program program = plan_memory(g, 64);
  EXPECT_EQ(verify_program(program), "");
  // One x + i and one product alive at a time, and small things.
  EXPECT_LT(program.arena_bytes, 3 * 256 * 256 * 4);
}

TEST(Schedule, RecomputationsComeLate) {
  const Value x = leaf({8, 8});
  Attrs region;
  region.bits = 1;
  const Value in{make_node(Op::region_enter, {x}, region), 0};
  const Value hidden = matmul(in, in);
  const Value out{make_node(Op::region_exit, {matmul(hidden, in)}, region), 0};
  const Value end = matmul(matmul(out, out), x);
  const KernelGraph g = scheduled(function({x}, {matmul(hidden, end)}));
  int late = -1;
  for (size_t i = 0; i < g.kernels.size(); ++i) {
    if (g.kernels[i].late) late = int(i);
  }
  EXPECT_EQ(late, int(g.kernels.size()) - 2);
}

TEST(Schedule, IsDeterministic) {
  const Value x = leaf({16, 16});
  std::vector<Value> outs;
  for (int i = 0; i < 20; ++i) outs.push_back(matmul(apply(Op::exp, x * double(i)), x));
  const GraphFunction f = function({x}, outs);
  std::vector<std::string> first;
  for (int repeat = 0; repeat < 3; ++repeat) {
    std::vector<std::string> labels;
    for (const KernelNode& k : scheduled(f).kernels) labels.push_back(cat(k.label, k.buffers[0]));
    if (repeat == 0) first = labels;
    EXPECT_EQ(labels, first);
  }
}

}  // namespace
}  // namespace tessera
