#include "tessera/graph/verify.h"

#include <gtest/gtest.h>

#include "tessera/graph/build.h"
#include "tessera/graph/composite.h"

namespace tessera {
namespace {

using namespace graph;

Value f32(const Shape& shape) { return make_leaf({DType::f32, shape}); }
Value i64(const Shape& shape) { return make_leaf({DType::i64, shape}); }

constexpr uint64_t kNewest = UINT64_MAX;

// A node as make_node would have built it, for a test to break.
struct Record {
  Op op;
  std::vector<Value> inputs;
  std::vector<Type> types;
  Attrs attrs = {};
  uint64_t id = kNewest;
  bool has_vjp = false;

  std::string verify() const { return verify_node({op, inputs, attrs, types, id, has_vjp}); }
};

Type type(const Shape& shape) { return {DType::f32, shape}; }

TEST(VerifyGraph, AcceptsWhatTheApiBuilds) {
  const Value x = f32({4, 6}), w = f32({6}), index = i64({2, 6}), start = i64({});
  const std::vector<Value> norm = layer_norm(x, w, w, 1e-5);
  const NodePtr backward = make_node(Op::layer_norm_backward, {x, x, w, norm[1], norm[2]});
  Attrs vjp;
  vjp.axis = 1;
  const NodePtr custom =
      make_node(Op::custom_vjp, {x, norm[0], w}, vjp, std::make_shared<const VjpFunction>());
  std::vector<Value> outputs = {x + w,
                                where(apply(Op::lt, x, x), x, x),
                                cast(x, DType::i8),
                                uniform(start, start, {3}),
                                reduce(Op::sum, x, {0, 1}),
                                reduce(Op::argmax, x, {1}),
                                reshape(x, {24}),
                                permute(x, {1, 0}),
                                slice(x, {3, 0}, {2, 3}, {-1, 2}),
                                pad(x, {1, 0}, {0, 2}, 0),
                                concat({x, x}, 1),
                                gather(x, index, 0),
                                scatter_add(x, index, f32({2, 6}), 0),
                                dynamic_slice(x, start, 1, 2),
                                dynamic_update_slice(x, f32({1, 6}), start, 0),
                                matmul(x, permute(x, {1, 0})),
                                stop_gradient(x),
                                softmax(x),
                                iota(DType::i32, {2, 3}, 1),
                                norm[0],
                                norm[2],
                                {backward, 1},
                                {custom, 1}};
  for (const NodePtr& node : {norm[0].node, backward, softmax(x).node}) {
    for (const Value& value : composite(*node)) outputs.push_back(value);
  }
  EXPECT_EQ(verify_graph(outputs), "");
  EXPECT_EQ(verify_graph({}), "");
}

TEST(VerifyGraph, FindsBrokenOutputs) {
  const Value x = f32({2});
  std::vector<Value> outputs = {x, {}};
  EXPECT_EQ(verify_graph(outputs), "output 1 is empty");
  outputs = {{x.node, 1}};
  EXPECT_EQ(verify_graph(outputs), "output 0 is output 1 of a node that has 1");
  outputs = {{x.node, -1}};
  EXPECT_EQ(verify_graph(outputs), "output 0 is output -1 of a node that has 1");
}

// The one broken node the API lets through: it does not ask for the function.
TEST(VerifyGraph, NamesTheNode) {
  const Value x = f32({2});
  Attrs attrs;
  attrs.axis = 1;
  const Value custom = {make_node(Op::custom_vjp, {x, x}, attrs), 0};
  const std::vector<Value> outputs = {apply(Op::exp, custom)};
  EXPECT_EQ(verify_graph(outputs), cat("node ", custom.node->id, " (custom_vjp): ",
                                       "a custom_vjp without its backward function"));
}

TEST(VerifyNode, AcceptsAGoodRecord) {
  EXPECT_EQ((Record{Op::add, {f32({2}), f32({2})}, {type({2})}}.verify()), "");
  Record leaf{Op::leaf, {}, {type({2})}};
  leaf.attrs.a = {2};
  EXPECT_EQ(leaf.verify(), "");
}

TEST(VerifyNode, CountsInputsAndOutputs) {
  EXPECT_EQ((Record{Op::add, {f32({2})}, {type({2})}}.verify()), "expected 2 inputs, got 1");
  EXPECT_EQ((Record{Op::exp, {f32({2})}, {}}.verify()), "expected 1 outputs, got 0");
  EXPECT_EQ((Record{Op::exp, {f32({2})}, {type({2}), type({2})}}.verify()),
            "expected 1 outputs, got 2");
  Record custom{Op::custom_vjp, {f32({2})}, {}};
  EXPECT_EQ(custom.verify(), "expected at least 1 output, got 0");
  custom.types = {type({2}), type({2})};
  custom.has_vjp = true;
  EXPECT_EQ(custom.verify(), "expected 1 outputs, got 2");
}

TEST(VerifyNode, LooksAtEachInput) {
  const Value x = f32({2});
  EXPECT_EQ((Record{Op::add, {x, {}}, {type({2})}}.verify()), "input 1 is empty");
  EXPECT_EQ((Record{Op::exp, {{x.node, 3}}, {type({2})}}.verify()),
            "input 0 is output 3 of a node that has 1");
  Record record{Op::exp, {x}, {type({2})}};
  record.id = x.node->id;
  EXPECT_EQ(record.verify(), cat("input 0 has id ", x.node->id, ", not below ", x.node->id));
}

TEST(VerifyNode, ComparesTypes) {
  EXPECT_EQ((Record{Op::exp, {f32({2})}, {type({3})}}.verify()),
            "output 0 is f32(3,), the rules give f32(2,)");
  EXPECT_EQ((Record{Op::lt, {f32({2}), f32({2})}, {type({2})}}.verify()),
            "output 0 is f32(2,), the rules give bool(2,)");
  EXPECT_EQ((Record{Op::leaf, {}, {type({2})}}.verify()),
            "output 0 is f32(2,), the rules give f32()");
  EXPECT_EQ((Record{Op::matmul, {f32({2, 3}), f32({2, 3})}, {type({2, 3})}}.verify()),
            "matmul: inner dimensions differ: (2, 3) @ (2, 3)");
}

TEST(VerifyNode, RefusesNegativeExtents) {
  Record leaf{Op::leaf, {}, {type({2, -3})}};
  leaf.attrs.a = {2, -3};
  EXPECT_EQ(leaf.verify(), "a negative extent in f32(2, -3)");
}

TEST(VerifyNode, FindsBackwardFunctionsElsewhere) {
  Record record{Op::exp, {f32({2})}, {type({2})}};
  record.has_vjp = true;
  EXPECT_EQ(record.verify(), "a backward function outside custom_vjp");
}

TEST(VerifyNode, ChecksReducedAxes) {
  Record record{Op::sum, {f32({2, 3})}, {type({1, 1})}};
  record.attrs.a = {0, 1};
  EXPECT_EQ(record.verify(), "");
  record.attrs.a = {1, 0};
  EXPECT_EQ(record.verify(), "axes (1, 0) are not sorted");
  record.attrs.a = {1, 1};
  EXPECT_EQ(record.verify(), "axes (1, 1) are not sorted");
  record.attrs.a = {2};
  EXPECT_EQ(record.verify(), "axis 2 is not one of 2 axes");
  record.op = Op::argmax;
  record.attrs.a = {0, 1};
  EXPECT_EQ(record.verify(), "expected one axis, got (0, 1)");
  record.attrs.a = {};
  EXPECT_EQ(record.verify(), "expected one axis, got ()");
}

TEST(VerifyNode, ChecksTheAxis) {
  const Value x = f32({2, 3}), index = i64({2, 3}), start = i64({});
  const Record records[] = {
      {Op::concat, {x, x}, {type({2, 6})}},
      {Op::gather, {x, index}, {type({2, 3})}},
      {Op::scatter_add, {x, index, x}, {type({2, 3})}},
      {Op::scatter, {x, index, x}, {type({2, 3})}},
      {Op::cumsum, {x}, {type({2, 3})}},
      {Op::dynamic_update_slice, {x, x, start}, {type({2, 3})}},
  };
  for (Record record : records) {
    record.attrs.axis = 1;
    EXPECT_EQ(record.verify(), "") << name(record.op);
    for (const int64_t axis : {-1, 2}) {
      record.attrs.axis = axis;
      EXPECT_EQ(record.verify(), cat("axis ", axis, " is not one of 2 axes")) << name(record.op);
    }
  }
  EXPECT_EQ((Record{Op::concat, {}, {type({2})}}.verify()),
            "concat: expected at least one tensor, got none");
  EXPECT_EQ((Record{Op::iota, {}, {type({})}}.verify()), "axis 0 is not one of 0 axes");
}

TEST(VerifyNode, ChecksTheSizeOfADynamicSlice) {
  Record record{Op::dynamic_slice, {f32({2, 3}), i64({})}, {type({1, 3})}};
  EXPECT_EQ(record.verify(), "expected one size, got ()");
  record.attrs.a = {1};
  EXPECT_EQ(record.verify(), "");
  record.attrs.axis = 5;
  EXPECT_EQ(record.verify(), "axis 5 is not one of 2 axes");
}

TEST(VerifyNode, ChecksTheSizesOfWindowsAndTopK) {
  Record window{Op::window, {f32({5})}, {type({4, 2})}};
  window.attrs.a = {2};
  EXPECT_EQ(window.verify(), "expected a size and a step, got (2,)");
  window.attrs.a = {2, 1};
  EXPECT_EQ(window.verify(), "");
  window.attrs.axis = 1;
  EXPECT_EQ(window.verify(), "axis 1 is not one of 1 axes");
  Record topk{Op::topk, {f32({5})}, {type({2}), {DType::i64, {2}}}};
  EXPECT_EQ(topk.verify(), "expected one k, got ()");
  topk.attrs.a = {2};
  EXPECT_EQ(topk.verify(), "");
}

TEST(VerifyNode, ChecksTheSplitOfACustomVjp) {
  Record record{Op::custom_vjp, {f32({2}), f32({3})}, {type({3})}};
  record.has_vjp = true;
  record.attrs.axis = 1;
  EXPECT_EQ(record.verify(), "");
  for (const int64_t split : {-1, 2, 3}) {
    record.attrs.axis = split;
    EXPECT_EQ(record.verify(), cat("expected fewer than 2 inputs to be x, got ", split));
  }
}

TEST(VerifyNode, RefusesAnOpOutsideTheTable) {
  EXPECT_EQ((Record{static_cast<Op>(250), {}, {}}.verify()), "op 250 is outside the table");
}

}  // namespace
}  // namespace tessera
