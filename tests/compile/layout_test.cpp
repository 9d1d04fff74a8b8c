#include <gtest/gtest.h>

#include "compile/function_builder.h"
#include "tessera/compile/views.h"

namespace tessera {
namespace {

using namespace graph;

std::optional<View> reshaped(const View& view, const Shape& shape) {
  Attrs attrs;
  attrs.a = shape;
  return move_view(Op::reshape, attrs, view);
}

TEST(Views, ReshapeSplitsAndMergesEvenRuns) {
  const View packed = contiguous_view({6, 4});
  EXPECT_EQ(reshaped(packed, {2, 3, 4})->strides, (Dims{12, 4, 1}));
  EXPECT_EQ(reshaped(packed, {24})->strides, (Dims{1}));
  EXPECT_EQ(reshaped(packed, {1, 24, 1})->shape, (Shape{1, 24, 1}));
  const View turned{{4, 6}, {1, 4}, 0};
  EXPECT_FALSE(reshaped(turned, {24}));
  EXPECT_EQ(reshaped(turned, {2, 2, 6})->strides, (Dims{2, 1, 4}));
  EXPECT_EQ(reshaped(turned, {4, 3, 2})->strides, (Dims{1, 8, 4}));
  const View repeated{{5, 3}, {0, 0}, 7};
  EXPECT_EQ(reshaped(repeated, {15})->strides, (Dims{0}));
  EXPECT_EQ(reshaped(repeated, {15})->offset, 7);
  const View reversed{{6}, {-1}, 5};
  EXPECT_EQ(reshaped(reversed, {2, 3})->strides, (Dims{-3, -1}));
  EXPECT_TRUE(reshaped(View{{0, 3}, {1, 5}, 0}, {3, 0}));
}

TEST(Views, WindowsShareTheirElements) {
  Attrs attrs;
  attrs.axis = 0;
  attrs.a = {3, 2};
  const View windows = *move_view(Op::window, attrs, contiguous_view({8, 5}));
  EXPECT_EQ(windows.shape, (Shape{3, 5, 3}));
  EXPECT_EQ(windows.strides, (Dims{10, 1, 5}));
  // Rows that overlap are no run of elements.
  EXPECT_FALSE(reshaped(windows, {45}));
  const View line{{4, 3}, {1, 1}, 2};
  EXPECT_FALSE(reshaped(line, {12}));
  EXPECT_FALSE(is_contiguous(View{{4, 3}, {1, 1}, 0}));
}

TEST(Layout, MovesCostNothingWhereKernelsTakeStrides) {
  const Value a = leaf({3, 4}), b = leaf({5, 4});
  const Instances i = instances_of(function({a, b}, {matmul(a, swap_last(b))}));
  EXPECT_EQ(i.copies, 0);
  EXPECT_EQ(count(i, Op::matmul), 1);
  const Instance& product = i.list.back();
  EXPECT_EQ(product.inputs[1].view.strides, (Dims{1, 4}));
  // Packed queries, keys and values: slices of one product, split into heads.
  const Value qkv = leaf({2, 7, 3 * 8});
  auto head = [&](int64_t k) {
    const Value part = slice(qkv, {0, 0, 8 * k}, {2, 7, 8}, {1, 1, 1});
    return permute(reshape(part, {2, 7, 2, 4}), {0, 2, 1, 3});
  };
  const Instances attention = instances_of(function({qkv}, {matmul(head(0), swap_last(head(1)))}));
  EXPECT_EQ(attention.copies, 0);
}

TEST(Layout, WindowsCostNothingButAsAResult) {
  const Value x = leaf({2, 9}), kernel = leaf({3, 4});
  const Value windows = window(x, 1, 3, 1);
  const Instances product =
      instances_of(function({x, kernel}, {matmul(windows, broadcast_to(kernel, {2, 3, 4})),
                                          reduce(Op::max, windows, {2})}));
  EXPECT_EQ(product.copies, 0);
  EXPECT_EQ(instances_of(function({x}, {windows})).copies, 1);
  // An update of overlapping windows does not run in place.
  const Value index = make_leaf({DType::i64, {2, 7, 1}}), source = leaf({2, 7, 1});
  const KernelGraph g = kernels_of(function(
      {x, index, source}, {scatter(window(apply(Op::exp, x), 1, 3, 1), index, source, 2)}));
  EXPECT_FALSE(may_share(g.kernels.back(), 0, 3));
}

TEST(Layout, InsertsCopiesWhereItMust) {
  const Value x = leaf({3, 4});
  const Instances reshaped_copy =
      instances_of(function({x}, {apply(Op::exp, reshape(swap_last(x), {12}))}));
  EXPECT_EQ(reshaped_copy.copies, 1);
  const Instances contiguous = instances_of(function({x}, {softmax(swap_last(x))}));
  EXPECT_EQ(contiguous.copies, 1);
  EXPECT_EQ(instances_of(function({x}, {softmax(x)})).copies, 0);
}

TEST(Layout, ResultsGetStorageOfTheirOwn) {
  const Value x = leaf({3, 4});
  const Value y = apply(Op::exp, x);
  // An input, a view, the same value twice, a constant.
  const Instances i =
      instances_of(function({x}, {x, swap_last(y), y, y, full({DType::f32, {2}}, 1)}));
  EXPECT_EQ(i.copies, 3);
  std::vector<int> owners;
  for (const Operand& o : i.outputs) {
    EXPECT_TRUE(is_contiguous(o.view));
    EXPECT_NE(i.list[size_t(o.inst)].op, Op::leaf);
    EXPECT_EQ(std::count(owners.begin(), owners.end(), o.inst), 0);
    owners.push_back(o.inst);
  }
}

TEST(Layout, UnusedOutputsAreKnown) {
  const Value x = leaf({3, 4}), gamma = leaf({4}), beta = leaf({4});
  const Instances i =
      instances_of(function({x, gamma, beta}, {layer_norm(x, gamma, beta, 1e-5)[0]}));
  for (const Instance& instance : i.list) {
    if (instance.op == Op::layer_norm) EXPECT_EQ(instance.used, (std::vector<char>{1, 0, 0}));
  }
}

}  // namespace
}  // namespace tessera
