#include "tessera/graph/infer.h"

#include <gtest/gtest.h>

#include "tessera/graph/build.h"

namespace tessera {
namespace {

using namespace graph;

Value leaf(DType dtype, const Shape& shape) { return make_leaf({dtype, shape}); }
Value f32(const Shape& shape) { return leaf(DType::f32, shape); }
Value i64(const Shape& shape) { return leaf(DType::i64, shape); }

std::string type_of(const Value& value) { return to_string(value.type()); }

TEST(InferTypes, ScalarFunctionsKeepShapeAndDtype) {
  EXPECT_EQ(type_of(apply(Op::exp, f32({2, 3}))), "f32(2, 3)");
  EXPECT_EQ(type_of(apply(Op::neg, leaf(DType::i8, {4}))), "i8(4,)");
  EXPECT_EQ(type_of(apply(Op::add, leaf(DType::bf16, {}), leaf(DType::bf16, {}))), "bf16()");
  EXPECT_EQ(type_of(apply(Op::lt, i64({2}), i64({2}))), "bool(2,)");
  EXPECT_EQ(type_of(apply(Op::isfinite, f32({0, 2}))), "bool(0, 2)");
  const Value condition = leaf(DType::boolean, {2});
  EXPECT_EQ(type_of(apply(Op::logical_and, condition, condition)), "bool(2,)");
  EXPECT_EQ(type_of(apply(Op::eq, condition, condition)), "bool(2,)");
  EXPECT_EQ(type_of(where(condition, i64({2}), i64({2}))), "i64(2,)");
  EXPECT_EQ(type_of(where(condition, condition, condition)), "bool(2,)");
}

TEST(InferTypes, Sources) {
  EXPECT_EQ(type_of(constant(DType::f16, 1)), "f16()");
  EXPECT_EQ(type_of(iota(DType::u8, {2, 5}, 1)), "u8(2, 5)");
  EXPECT_EQ(type_of(uniform(i64({}), i64({}), {7, 0})), "f32(7, 0)");
  EXPECT_EQ(type_of(full({DType::i32, {2, 2}}, 3)), "i32(2, 2)");
  EXPECT_EQ(type_of(cast(f32({2}), DType::boolean)), "bool(2,)");
}

TEST(InferTypes, ReductionsKeepTheAxisWithExtentOne) {
  EXPECT_EQ(type_of(reduce(Op::sum, f32({2, 3, 4}), {0, 2})), "f32(1, 3, 1)");
  EXPECT_EQ(type_of(reduce(Op::sum, f32({2, 0}), {1})), "f32(2, 1)");
  EXPECT_EQ(type_of(reduce(Op::max, leaf(DType::u8, {2, 3}), {0})), "u8(1, 3)");
  EXPECT_EQ(type_of(reduce(Op::min, leaf(DType::boolean, {2, 3}), {1})), "bool(2, 1)");
  EXPECT_EQ(type_of(reduce(Op::max, f32({0, 3}), {1})), "f32(0, 1)");
  EXPECT_EQ(type_of(reduce(Op::argmax, f32({2, 3}), {1})), "i64(2, 1)");
}

TEST(InferTypes, Moves) {
  EXPECT_EQ(type_of(reshape(f32({2, 6}), {3, 4})), "f32(3, 4)");
  EXPECT_EQ(type_of(reshape(f32({0, 6}), {4, 0})), "f32(4, 0)");
  EXPECT_EQ(type_of(permute(f32({2, 3, 4}), {2, 0, 1})), "f32(4, 2, 3)");
  EXPECT_EQ(type_of(expand(f32({1, 3}), {5, 3})), "f32(5, 3)");
  EXPECT_EQ(type_of(expand(f32({1, 3}), {0, 3})), "f32(0, 3)");
  EXPECT_EQ(type_of(slice(f32({5, 6}), {4, 1}, {3, 2}, {-2, 4})), "f32(3, 2)");
  EXPECT_EQ(type_of(slice(f32({5}), {5}, {0}, {1})), "f32(0,)");
}

TEST(InferTypes, Assembled) {
  EXPECT_EQ(type_of(pad(f32({2, 3}), {1, 0}, {2, 4}, 0)), "f32(5, 7)");
  EXPECT_EQ(type_of(concat({f32({2, 3}), f32({2, 0}), f32({2, 4})}, 1)), "f32(2, 7)");
  EXPECT_EQ(type_of(concat({f32({2})}, 0)), "f32(2,)");
}

TEST(InferTypes, Indexed) {
  const Value start = leaf(DType::i32, {});
  EXPECT_EQ(type_of(gather(f32({5, 3}), leaf(DType::u8, {7, 3}), 0)), "f32(7, 3)");
  EXPECT_EQ(type_of(scatter_add(i64({5, 3}), i64({7, 3}), i64({7, 3}), 0)), "i64(5, 3)");
  EXPECT_EQ(type_of(dynamic_slice(f32({5, 3}), start, 0, 2)), "f32(2, 3)");
  EXPECT_EQ(type_of(dynamic_slice(f32({5, 3}), start, 0, 0)), "f32(0, 3)");
  EXPECT_EQ(type_of(dynamic_update_slice(f32({5, 3}), f32({1, 3}), start, 0)), "f32(5, 3)");
}

TEST(InferTypes, Products) {
  EXPECT_EQ(type_of(matmul(f32({2, 3}), f32({3, 5}))), "f32(2, 5)");
  EXPECT_EQ(type_of(matmul(f32({4, 2, 3}), f32({4, 3, 5}))), "f32(4, 2, 5)");
  EXPECT_EQ(type_of(matmul(f32({2, 0}), f32({0, 5}))), "f32(2, 5)");
  EXPECT_EQ(type_of(matmul(i64({2, 3}), i64({3, 1}))), "i64(2, 1)");
}

TEST(InferTypes, MarkersKeepTheirType) {
  const Value x = f32({2, 3});
  EXPECT_EQ(type_of(stop_gradient(x)), "f32(2, 3)");
  for (const Op op : {Op::region_enter, Op::region_exit}) {
    EXPECT_EQ(type_of({make_node(op, {x}), 0}), "f32(2, 3)");
  }
  Attrs attrs;
  attrs.axis = 1;
  const auto vjp = std::make_shared<const VjpFunction>();
  const NodePtr node = make_node(Op::custom_vjp, {x, i64({2}), f32({})}, attrs, vjp);
  ASSERT_EQ(node->types.size(), 2u);
  EXPECT_EQ(type_of({node, 0}), "i64(2,)");
  EXPECT_EQ(type_of({node, 1}), "f32()");
  EXPECT_EQ(node->vjp, vjp);
}

TEST(InferTypes, KernelsKeepStatisticsInTheComputeType) {
  const Value x = leaf(DType::f16, {4, 2, 3}), w = leaf(DType::f16, {3});
  EXPECT_EQ(type_of(softmax(x)), "f16(4, 2, 3)");
  const std::vector<Value> y = layer_norm(x, w, w, 1e-5);
  ASSERT_EQ(y.size(), 3u);
  EXPECT_EQ(type_of(y[0]), "f16(4, 2, 3)");
  EXPECT_EQ(type_of(y[1]), "f32(4, 2, 1)");
  EXPECT_EQ(type_of(y[2]), "f32(4, 2, 1)");
  const auto d = outputs_of(make_node(Op::layer_norm_backward, {x, x, w, y[1], y[2]}));
  ASSERT_EQ(d.size(), 3u);
  EXPECT_EQ(type_of(d[0]), "f16(4, 2, 3)");
  EXPECT_EQ(type_of(d[1]), "f16(3,)");
  EXPECT_EQ(type_of(d[2]), "f16(3,)");
}

TEST(InferTypes, ExtentsAbove32Bits) {
  const int64_t big = int64_t(3) << 31;
  EXPECT_EQ(reduce(Op::sum, f32({big, 2}), {1}).shape(), Shape({big, 1}));
  EXPECT_EQ(concat({f32({big}), f32({big})}, 0).shape(), Shape({2 * big}));
  EXPECT_EQ(slice(f32({big}), {big - 1}, {1}, {1}).shape(), Shape({1}));
  EXPECT_EQ(reshape(f32({big, 2}), {2 * big}).shape(), Shape({2 * big}));
}

TEST(InferTypesDeathTest, WrongArityIsABug) {
  EXPECT_DEATH(make_node(Op::add, {f32({2})}), "assertion failed");
}

}  // namespace
}  // namespace tessera
