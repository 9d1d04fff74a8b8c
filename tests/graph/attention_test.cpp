// The types, texts and records of attention's ops; what they compute is tests/conformance's.
#include "tessera/graph/attention.h"

#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "tessera/base/attention_options.h"
#include "tessera/graph/build.h"
#include "tessera/graph/print.h"
#include "tessera/graph/verify.h"

namespace tessera {
namespace {

Value leaf(DType dtype, const Shape& shape) { return make_leaf({dtype, shape}); }
Value f32(const Shape& shape) { return leaf(DType::f32, shape); }

AttentionInputs inputs(DType dtype = DType::f32) {
  AttentionInputs in;
  in.q = leaf(dtype, {2, 4, 3, 6});
  in.k = leaf(dtype, {2, 2, 5, 6});
  in.v = leaf(dtype, {2, 2, 5, 7});
  return in;
}

AttentionInputs with_everything(DType dtype) {
  AttentionInputs in = inputs(dtype);
  in.mask = leaf(compute_type(dtype), {2, 4, 3, 5});
  in.lengths = leaf(DType::i64, {2});
  in.key = leaf(DType::i64, {});
  in.offset = leaf(DType::i64, {});
  in.causal = true;
  in.scale = 0.5;
  in.dropout = 0.125;
  return in;
}

TEST(AttentionNode, Types) {
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
    const std::vector<Value> y = graph::attention(with_everything(dtype));
    ASSERT_EQ(y.size(), 2u);
    EXPECT_EQ(y[0].type(), (Type{dtype, {2, 4, 3, 7}}));
    EXPECT_EQ(y[1].type(), (Type{compute_type(dtype), {2, 4, 3}}));
    const AttentionInputs in = attention_inputs(*y[0].node);
    const std::vector<Value> d = graph::attention_backward(y[0], in, y[0], y[1]);
    ASSERT_EQ(d.size(), 3u);
    EXPECT_EQ(d[0].type(), in.q.type());
    EXPECT_EQ(d[1].type(), in.k.type());
    EXPECT_EQ(d[2].type(), in.v.type());
    EXPECT_EQ(verify_graph(d), "");
  }
}

TEST(AttentionNode, HoldsWhatItWasBuiltFrom) {
  const AttentionInputs given = with_everything(DType::f32);
  const std::vector<Value> y = graph::attention(given);
  const NodePtr backward = graph::attention_backward(y[0], given, y[0], y[1])[0].node;
  for (const NodePtr& node : {y[0].node, backward}) {
    const AttentionInputs in = attention_inputs(*node);
    EXPECT_EQ(in.q, given.q);
    EXPECT_EQ(in.k, given.k);
    EXPECT_EQ(in.v, given.v);
    EXPECT_EQ(in.mask, given.mask);
    EXPECT_EQ(in.lengths, given.lengths);
    EXPECT_EQ(in.key, given.key);
    EXPECT_EQ(in.offset, given.offset);
    EXPECT_TRUE(in.causal);
    EXPECT_EQ(in.scale, 0.5);
    EXPECT_EQ(in.dropout, 0.125);
  }
  EXPECT_NE(to_text(y).find(" options=15 scale=0.5"), std::string::npos);
  AttentionInputs other = given;
  other.dropout = 0.25;
  EXPECT_NE(graph::attention(other), y);
}

TEST(AttentionNodeError, Texts) {
  const auto text = [](const AttentionInputs& in) {
    return error_text([&] { graph::attention(in); });
  };
  AttentionInputs in = inputs();
  in.k = f32({2, 3, 5, 6});
  in.v = f32({2, 3, 5, 7});
  EXPECT_EQ(text(in),
            "attention: expected q (B, H, T, D), k (B, G, S, D) and v (B, G, S, E), H a multiple "
            "of G, got (2, 4, 3, 6), (2, 3, 5, 6) and (2, 3, 5, 7)");
  EXPECT_EQ(text(inputs(DType::i32)), "attention: expected floating-point queries, got i32");
  in = inputs();
  in.v = leaf(DType::f64, {2, 2, 5, 7});
  EXPECT_EQ(text(in), "attention: expected v of type f32(2, 2, 5, 7), got f64(2, 2, 5, 7)");
  in = inputs();
  in.mask = f32({3, 5});
  EXPECT_EQ(text(in), "attention: expected a mask of type f32(2, 4, 3, 5), got f32(3, 5)");
  in = inputs();
  in.lengths = leaf(DType::i32, {2});
  EXPECT_EQ(text(in), "attention: expected lengths of type i64(2,), got i32(2,)");
  in = inputs();
  in.key = in.offset = leaf(DType::i64, {1});
  EXPECT_EQ(text(in), "attention: expected a key of type i64(), got i64(1,)");
  in = inputs();
  const std::vector<Value> y = graph::attention(in);
  EXPECT_EQ(error_text([&] { graph::attention_backward(y[1], in, y[0], y[1]); }),
            "attention_backward: expected a gradient of type f32(2, 4, 3, 7), got f32(2, 4, 3)");
  EXPECT_EQ(error_text([&] { graph::attention_backward(y[0], in, y[0], y[0]); }),
            "attention_backward: expected lse of type f32(2, 4, 3), got f32(2, 4, 3, 7)");
}

TEST(AttentionNode, VerifierCountsOperands) {
  const AttentionInputs in = inputs();
  const std::vector<Value> y = graph::attention(in);
  Attrs attrs = y[0].node->attrs;
  const auto problem = [&] {
    return verify_node(
        {Op::attention, y[0].node->inputs(), attrs, y[0].node->types, y[0].node->id, false});
  };
  EXPECT_EQ(problem(), "");
  attrs.axis = kAttentionMask;
  EXPECT_EQ(problem(), "expected 4 inputs for options 2, got 3");
  attrs.axis = 0;
  attrs.a = {1};
  EXPECT_EQ(problem(), "expected 0 rates of dropout, got 1");
}

}  // namespace
}  // namespace tessera
