#include "tessera/graph/node.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <unordered_set>

#include "support/expect_error.h"
#include "tessera/graph/build.h"

namespace tessera {
namespace {

using namespace graph;

Value leaf(const Shape& shape = {2, 3}) { return make_leaf({DType::f32, shape}); }

TEST(Interning, SameOperationGivesSameNode) {
  const Value x = leaf(), y = leaf();
  EXPECT_EQ(x + y, x + y);
  EXPECT_NE(x + y, y + x);
  EXPECT_NE(x + y, x - y);
  EXPECT_NE(x + y, x + x);
  EXPECT_EQ(reduce(Op::sum, x, {1}), reduce(Op::sum, x, {1}));
  EXPECT_NE(reduce(Op::sum, x, {1}), reduce(Op::sum, x, {0}));
  EXPECT_EQ(apply(Op::exp, x * y + y), apply(Op::exp, x * y + y));
}

TEST(Interning, EveryAttributeCounts) {
  const Value x = leaf({4, 4});
  const Value base = slice(x, {0, 0}, {2, 2}, {1, 1});
  EXPECT_EQ(base, slice(x, {0, 0}, {2, 2}, {1, 1}));
  EXPECT_NE(base, slice(x, {1, 0}, {2, 2}, {1, 1}));
  EXPECT_NE(base, slice(x, {0, 0}, {2, 1}, {1, 1}));
  EXPECT_NE(base, slice(x, {0, 0}, {2, 2}, {1, 2}));
  EXPECT_NE(concat({x, x}, 0), concat({x, x}, 1));
  EXPECT_NE(cast(x, DType::f16), cast(x, DType::bf16));
  EXPECT_NE(pad(x, {1, 1}, {0, 0}, 0), pad(x, {1, 1}, {0, 0}, 1));
}

TEST(Interning, DimsOfOtherRankDiffer) {
  const Value x = leaf({1});
  EXPECT_NE(reshape(x, {1, 1}), reshape(x, {1, 1, 1}));
}

TEST(Interning, OutputsOfOneNodeDiffer) {
  const Value x = leaf({2, 4}), w = leaf({4});
  const std::vector<Value> outputs = layer_norm(x, w, w, 1e-5);
  EXPECT_EQ(outputs[1].node, outputs[2].node);
  EXPECT_NE(outputs[1], outputs[2]);
  EXPECT_NE(apply(Op::neg, outputs[1]), apply(Op::neg, outputs[2]));
  EXPECT_EQ(outputs, layer_norm(x, w, w, 1e-5));
  EXPECT_NE(outputs, layer_norm(x, w, w, 1e-6));
}

TEST(Interning, ConstantsCompareByBits) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(constant(DType::f32, 1.5), constant(DType::f32, 1.5));
  EXPECT_NE(constant(DType::f32, 0.0), constant(DType::f32, -0.0));
  EXPECT_EQ(constant(DType::f32, nan), constant(DType::f32, nan));
  EXPECT_NE(constant(DType::f32, 1), constant(DType::f64, 1));
  EXPECT_EQ(constant(DType::f32, 0.1), constant(DType::f32, double(0.1f)));
  EXPECT_NE(constant(DType::f64, 0.1), constant(DType::f64, double(0.1f)));
  EXPECT_EQ(constant_int(DType::i8, 256 + 3), constant_int(DType::i8, 3));
}

TEST(Interning, LeavesAreNeverEqual) {
  const Value a = leaf(), b = leaf();
  EXPECT_NE(a, b);
  EXPECT_EQ(a, a);
  EXPECT_NE(apply(Op::exp, a), apply(Op::exp, b));
}

TEST(Interning, ValuesHashByNodeAndOutput) {
  const Value x = leaf({2, 4}), w = leaf({4});
  const std::vector<Value> outputs = layer_norm(x, w, w, 1e-5);
  std::unordered_set<Value> set(outputs.begin(), outputs.end());
  set.insert(layer_norm(x, w, w, 1e-5)[0]);
  EXPECT_EQ(set.size(), 3u);
}

TEST(Leaf, RefusesWhatCannotBeCounted) {
  const int64_t big = int64_t(1) << 32;
  EXPECT_EQ(error_text([&] {
              make_leaf({DType::f32, {big, big}});
            }),
            "shape: (4294967296, 4294967296) has more than 2^63 - 1 elements");
  EXPECT_EQ(numel(leaf({big, big / 4}).shape()), int64_t(1) << 62);
}

TEST(WeakTable, NodesDieWithTheirLastHolder) {
  const int64_t before = live_nodes();
  {
    const Value x = leaf();
    Value y = apply(Op::exp, x) * 2.0;
    // x, exp, the literal, its reshape and expand, mul
    EXPECT_EQ(live_nodes(), before + 6);
    const Value again = apply(Op::exp, x) * 2.0;
    EXPECT_EQ(live_nodes(), before + 6);
    y = x;
    EXPECT_EQ(live_nodes(), before + 6);
  }
  EXPECT_EQ(live_nodes(), before);
}

TEST(WeakTable, ANodeBuiltAgainIsNew) {
  const Value x = leaf();
  const uint64_t first = apply(Op::exp, x).node->id;
  EXPECT_GT(apply(Op::exp, x).node->id, first);
}

TEST(WeakTable, FailedNodesLeaveNothing) {
  const int64_t before = live_nodes();
  EXPECT_THROW(reshape(leaf(), {7}), Error);
  EXPECT_EQ(live_nodes(), before);
}

TEST(NodePtr, SharesAndMoves) {
  const int64_t before = live_nodes();
  NodePtr empty;
  EXPECT_FALSE(empty);
  NodePtr a = leaf().node;
  NodePtr b = a;
  EXPECT_EQ(a, b);
  const NodePtr& same = b;
  b = same;
  EXPECT_EQ(a, b);
  NodePtr c = std::move(a);
  EXPECT_EQ(c, b);
  b = NodePtr();
  c = NodePtr();
  EXPECT_EQ(live_nodes(), before);
}

struct Counter : Slot {
  explicit Counter(int* alive_) : alive(alive_) { ++*alive; }
  ~Counter() override { --*alive; }
  int* alive;
};

TEST(Slots, BelongToOutputsAndDieWithTheNode) {
  int alive = 0;
  {
    const Value x = leaf({2, 4}), w = leaf({4});
    const NodePtr node = layer_norm(x, w, w, 1e-5)[0].node;
    EXPECT_EQ(node->slot(0), nullptr);
    const auto slot = std::make_shared<Counter>(&alive);
    node->set_slot(1, slot);
    EXPECT_EQ(node->slot(0), nullptr);
    EXPECT_EQ(node->slot(1), slot);
    EXPECT_EQ(node->slot(2), nullptr);
    node->set_slot(1, std::make_shared<Counter>(&alive));
    EXPECT_NE(node->slot(1), slot);
    EXPECT_EQ(alive, 2);
  }
  EXPECT_EQ(alive, 0);
}

// A slot may itself hold values: their nodes must not be destroyed by recursion either.
struct Holder : Slot {
  explicit Holder(Value v) : value(std::move(v)) {}
  Value value;
};

TEST(Slots, ChainsThroughSlotsAreDestroyed) {
  const int64_t before = live_nodes();
  {
    Value x = leaf({});
    for (int i = 0; i < 100'000; ++i) {
      const Value next = leaf({});
      next.node->set_slot(0, std::make_shared<Holder>(x));
      x = next;
    }
  }
  EXPECT_EQ(live_nodes(), before);
}

TEST(DeepGraphs, AMillionNodesAreDestroyedWithoutRecursion) {
  const int64_t before = live_nodes();
  {
    Value x = leaf({});
    for (int i = 0; i < 1'000'000; ++i) x = apply(Op::neg, x);
    EXPECT_EQ(live_nodes(), before + 1'000'001);
  }
  EXPECT_EQ(live_nodes(), before);
}

TEST(DeepGraphs, TopologicalOrderDoesNotRecurse) {
  const Value first = leaf({});
  Value x = first;
  // Each level uses the one before twice: a walk without a record of what it saw takes 2^n steps.
  for (int i = 0; i < 200'000; ++i) x = x + x;
  const std::vector<Value> outputs = {x};
  const std::vector<NodePtr> order = topological_order(outputs);
  ASSERT_EQ(order.size(), 200'001u);
  EXPECT_EQ(order.front(), first.node);
  EXPECT_EQ(order.back(), x.node);
}

TEST(TopologicalOrder, PutsInputsFirstAndListsOnce) {
  const Value a = leaf(), b = leaf();
  const Value s = a + b, p = s * a, q = apply(Op::exp, s);
  const std::vector<Value> outputs = {p, q, p};
  const std::vector<NodePtr> order = topological_order(outputs);
  const std::vector<NodePtr> expected = {a.node, b.node, s.node, p.node, q.node};
  EXPECT_EQ(order, expected);
  EXPECT_TRUE(topological_order({}).empty());
}

TEST(TopologicalOrder, StopsWhereTold) {
  const Value a = leaf(), b = leaf();
  const Value s = a + b, p = s * b;
  const std::vector<Value> outputs = {p};
  const auto order = topological_order(outputs, [&](const Node& n) { return &n == s.node.get(); });
  const std::vector<NodePtr> expected = {s.node, b.node, p.node};
  EXPECT_EQ(order, expected);
}

TEST(Types, Print) {
  EXPECT_EQ(to_string(Type{DType::f32, {2, 3}}), "f32(2, 3)");
  EXPECT_EQ(to_string(Type{DType::boolean, {}}), "bool()");
}

}  // namespace
}  // namespace tessera
