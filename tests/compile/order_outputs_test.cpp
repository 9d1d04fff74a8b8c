// Outputs that are stored in the order in which they are read: where, and where not.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "compile/function_builder.h"
#include "tessera/compile/views.h"
#include "tessera/graph/attention.h"

namespace tessera {
namespace {

using namespace graph;

TEST(Rearranged, FollowsEveryElement) {
  const View rows = contiguous_view({4, 3, 5, 2});
  const View turned = {{4, 5, 3, 2}, {30, 2, 10, 1}, 0};  // (0, 2, 1, 3) of rows
  const View apart = {{4, 5, 3, 2}, {200, 40, 2, 1}, 6};  // the same, among others
  const View packed = contiguous_view(turned.shape);
  const auto expect_moved = [&](const View& view, const View& to) {
    std::map<int64_t, int64_t> moves;
    const std::vector<int64_t> before = places(turned), after = places(to);
    for (size_t i = 0; i < before.size(); ++i) moves[before[i]] = after[i];
    const std::optional<View> moved = rearranged(view, turned, to);
    ASSERT_TRUE(moved);
    std::vector<int64_t> expected = places(view);
    for (int64_t& place : expected) place = moves.at(place);
    EXPECT_EQ(places(*moved), expected);
  };
  for (const View& to : {packed, apart}) {
    expect_moved(rows, to);
    expect_moved(turned, to);
    expect_moved({{4, 3, 5}, {30, 10, 2}, 1}, to);         // a column
    expect_moved({{2, 3, 2}, {60, 10, 1}, 34}, to);        // of every second matrix a row
    expect_moved({{4, 3, 5, 2}, {30, 10, -2, 1}, 8}, to);  // rows reversed
    expect_moved({{7, 5, 2}, {0, 2, 1}, 10}, to);          // a matrix repeated
    EXPECT_FALSE(rearranged(contiguous_view({12, 10}), turned, to));
    EXPECT_FALSE(rearranged(contiguous_view({120}), turned, to));
    EXPECT_FALSE(rearranged({{4, 3}, {30, 12}, 0}, turned, to));  // slanting
  }
  // Only what fills a buffer can be moved.
  EXPECT_FALSE(rearranged(rows, {{4, 5, 3, 2}, {60, 4, 20, 2}, 0}, packed));
  EXPECT_FALSE(rearranged(rows, {{4, 5, 3, 2}, {30, 2, 10, 1}, 1}, packed));
  EXPECT_EQ(rearranged(contiguous_view({}), contiguous_view({1}), {{1}, {0}, 5})->offset, 5);
}

constexpr int64_t kB = 2, kH = 3, kT = 4, kD = 8, kC = kH * kD;

Value heads(const Value& x) {  // (B, T, C) -> (B, H, T, D)
  return permute(reshape(x, {kB, kT, kH, kD}), {0, 2, 1, 3});
}

Value side_by_side(const Value& x) {  // (B, H, T, D) -> (B, T, C)
  return reshape(permute(x, {0, 2, 1, 3}), {kB, kT, kC});
}

Value part(const Value& x, int64_t i) { return slice(x, {0, 0, i * kC}, {kB, kT, kC}, {1, 1, 1}); }

Value padded(const Value& x, int64_t i) { return pad(x, {0, 0, i * kC}, {0, 0, (2 - i) * kC}, 0); }

// Attention between two products, and its way back.
struct Layer {
  Layer() {
    AttentionInputs in;
    in.q = heads(part(qkv, 0));
    in.k = heads(part(qkv, 1));
    in.v = heads(part(qkv, 2));
    const std::vector<Value> forward = attention(in);
    y = forward[0];
    slopes = attention_backward(heads(reshape(g, {kB, kT, kC})), in, y, forward[1]);
    out = matmul(reshape(side_by_side(y), {kB * kT, kC}), w);
  }
  Value split_gradient() const {
    return padded(side_by_side(slopes[2]), 2) + padded(side_by_side(slopes[1]), 1) +
           padded(side_by_side(slopes[0]), 0);
  }
  Value back(const Value& gradient) const {
    return matmul(reshape(gradient, {kB * kT, 3 * kC}), wide);
  }
  GraphFunction of(std::vector<Value> outputs) const {
    return function({qkv, w, wide, g}, std::move(outputs));
  }

  Value qkv = leaf({kB, kT, 3 * kC}), w = leaf({kC, 5}), wide = leaf({3 * kC, 5});
  Value g = leaf({kB * kT, kC});
  Value y, out;
  std::vector<Value> slopes;
};

Program compiled(const GraphFunction& f, bool asked = true, bool enabled = true) {
  Target target = target_with({"matmul", "softmax", "attention", "attention_backward", "copy"});
  target.orders_outputs = asked;
  CompileOptions options;
  options.order_outputs = enabled;
  options.verify = true;
  return compile_graph(f, target, options);
}

std::vector<std::string> labels(const Program& program) {
  std::vector<std::string> result;
  for (const Instruction& each : program.instructions) result.push_back(each.label);
  return result;
}

const Instruction& find(const Program& program, std::string_view label) {
  return *std::ranges::find(program.instructions, label, &Instruction::label);
}

using Labels = std::vector<std::string>;
const View kTurned = {{kB, kH, kT, kD}, {kT * kC, kD, kC, 1}, 0};

TEST(OrderOutputs, ByWhomTheyAreRead) {
  const Layer layer;
  const Program program = compiled(layer.of({layer.out}));
  EXPECT_EQ(labels(program), (Labels{"attention", "matmul"}));
  EXPECT_EQ(program.report.copies, 0);
  EXPECT_EQ(find(program, "attention").call.operands[3].view, kTurned);
  const OperandView read = find(program, "matmul").call.operands[0];
  EXPECT_EQ(read.view, contiguous_view({kB * kT, kC}));
}

TEST(OrderOutputs, AsTargetAndOptionsSay) {
  const Layer layer;
  const GraphFunction f = layer.of({layer.out, layer.back(layer.split_gradient())});
  for (const auto& [asked, enabled] : {std::pair(false, true), std::pair(true, false)}) {
    const Program program = compiled(f, asked, enabled);
    EXPECT_EQ(program.report.copies, 4);
    EXPECT_EQ(find(program, "attention").call.operands[3].view, contiguous_view({kB, kH, kT, kD}));
  }
  const Program program = compiled(f);
  EXPECT_EQ(program.report.copies, 0);
  EXPECT_EQ(program.instructions.size(), 4);
}

TEST(OrderOutputs, GradientsOfASplitShareABuffer) {
  const Layer layer;
  const Program program = compiled(layer.of({layer.back(layer.split_gradient())}));
  EXPECT_EQ(labels(program), (Labels{"attention", "attention_backward", "matmul"}));
  const Instruction& gradients = find(program, "attention_backward");
  for (int i = 0; i < 3; ++i) {
    const View expected = {kTurned.shape, {kT * 3 * kC, kD, 3 * kC, 1}, i * kC};
    EXPECT_EQ(gradients.call.operands[size_t(6 + i)].view, expected);
    EXPECT_EQ(gradients.buffers[size_t(6 + i)], gradients.buffers[6]);
  }
  const Instruction& product = find(program, "matmul");
  EXPECT_EQ(product.buffers[0], gradients.buffers[6]);
  EXPECT_EQ(product.call.operands[0].view, contiguous_view({kB * kT, 3 * kC}));
  const int64_t bytes = 4 * kB * kT * 3 * kC;
  EXPECT_EQ(program.buffers[size_t(gradients.buffers[6])].bytes, bytes);
  // Counted once: y, which is read in the order of its axes, its lse, and the gradients.
  EXPECT_EQ(program.report.peak_bytes, bytes + bytes / 3 + 4 * kB * kH * kT);
}

// One of three is read elsewhere, too: there in strides.
TEST(OrderOutputs, OthersReadThemWhereTheyLie) {
  const Layer layer;
  const Value other = apply(Op::exp, layer.slopes[1]);
  const Program program = compiled(layer.of({layer.back(layer.split_gradient()), other}));
  EXPECT_EQ(program.report.copies, 0);
  const Instruction& exp = find(program, "exp");
  EXPECT_EQ(exp.buffers[0], find(program, "attention_backward").buffers[6]);
  const IrInst& load = exp.call.ir->insts[0];
  EXPECT_EQ(load.offset, kC);
  EXPECT_EQ(load.strides, (Dims{kT * 3 * kC, kD, 3 * kC, 1}));
}

TEST(OrderOutputs, ResultsLieInTheOrderOfTheirAxes) {
  const Layer layer;
  EXPECT_EQ(compiled(layer.of({layer.out, layer.y})).report.copies, 1);
  EXPECT_EQ(compiled(layer.of({side_by_side(layer.y)})).report.copies, 1);
  const Program program = compiled(layer.of({layer.split_gradient()}));
  EXPECT_EQ(labels(program), (Labels{"attention", "attention_backward", "concat"}));
  EXPECT_EQ(program.report.copies, 0);  // concat reads each in its order
}

TEST(OrderOutputs, NotWhereAKernelWantsThemPacked) {
  const Layer layer;
  EXPECT_EQ(compiled(layer.of({layer.out, softmax(layer.y)})).report.copies, 1);
}

TEST(OrderOutputs, OneOfTwoOrders) {
  const Layer layer;
  const Value other = reshape(permute(layer.y, {2, 0, 1, 3}), {kT * kB, kC});
  const Program program = compiled(layer.of({layer.out, matmul(other, layer.w)}));
  EXPECT_EQ(program.report.copies, 1);
  const View by_position = {kTurned.shape, {kC, kD, kB * kC, 1}, 0};
  const View stored = find(program, "attention").call.operands[3].view;
  EXPECT_TRUE(stored == kTurned || stored == by_position);
  for (const Instruction& each : program.instructions) {
    if (each.label != "matmul") continue;
    EXPECT_EQ(each.call.operands[0].view, contiguous_view({kB * kT, kC}));
  }
  // A row is never taken apart.
  const Value columns = reshape(swap_last(layer.y), {kB * kH * kD, kT});
  EXPECT_EQ(compiled(layer.of({matmul(swap_last(columns), columns)})).report.copies, 1);
}

TEST(OrderOutputs, PartsOfOneKernelOnly) {
  const Layer layer;
  const Value doubled = concat(
      {side_by_side(layer.slopes[0]), side_by_side(layer.slopes[1]), side_by_side(layer.slopes[1])},
      2);
  const Value mixed = concat(
      {side_by_side(layer.slopes[0]), side_by_side(layer.y), side_by_side(layer.slopes[1])}, 2);
  for (const Value& whole : {doubled, mixed}) {
    const Program program = compiled(layer.of({layer.back(whole)}));
    EXPECT_EQ(labels(program), (Labels{"attention", "attention_backward", "concat", "matmul"}));
    EXPECT_EQ(find(program, "attention_backward").call.operands[6].view, kTurned);
  }
}

}  // namespace
}  // namespace tessera
