// Reading and writing at places that data decide, and x[{…}].
#include "tessera/tensor/indexing.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/expect_error.h"
#include "tessera/conformance/reference.h"
#include "tessera/tensor/autograd.h"
#include "tessera/tensor/ops.h"

namespace tessera {
namespace {

using Doubles = std::vector<double>;
using Integers = std::vector<int64_t>;

Tensor counted(const Shape& shape) {
  return reshape(arange(numel(shape), DType::f32), shape).detach();
}

TEST(Brackets, PositionsAndSlices) {
  const Tensor x = counted({3, 4});
  EXPECT_EQ(to_doubles(x[1]), (Doubles{4, 5, 6, 7}));
  EXPECT_EQ(to_doubles(x[-1]), (Doubles{8, 9, 10, 11}));
  EXPECT_EQ((x[{2, 3}]).item(), 11);
  EXPECT_EQ((x[{2, 3}]).rank(), 0);
  EXPECT_EQ(to_doubles(x[{kAll, 1}]), (Doubles{1, 5, 9}));
  EXPECT_EQ(to_doubles(x[{Slice{1, 3}, Slice{0, 4, 2}}]), (Doubles{4, 6, 8, 10}));
  EXPECT_EQ(to_doubles(x[{Slice{{}, {}, -1}, 0}]), (Doubles{8, 4, 0}));
  EXPECT_EQ(to_doubles(x[{0, Slice{-2}}]), (Doubles{2, 3}));
  EXPECT_EQ(to_doubles(x[{0, Slice{{}, -2}}]), (Doubles{0, 1}));
  EXPECT_EQ(to_doubles(x[{0, Slice{3, {}, -2}}]), (Doubles{3, 1}));
  EXPECT_EQ((x[{Slice{2, 1}}]).shape(), (Shape{0, 4}));
}

TEST(Brackets, EllipsisNewAxesAndTensors) {
  const Tensor x = counted({2, 3, 4});
  EXPECT_EQ((x[{kEllipsis, 0}]).shape(), (Shape{2, 3}));
  EXPECT_EQ((x[{0, kEllipsis}]).shape(), (Shape{3, 4}));
  EXPECT_EQ((x[{1, kEllipsis, kNewAxis, 2}]).shape(), (Shape{3, 1}));
  EXPECT_EQ((x[{kNewAxis, kEllipsis}]).shape(), (Shape{1, 2, 3, 4}));
  EXPECT_EQ((x[{0, kEllipsis, 1, 2}]).item(), 6);
  const Tensor at = tensor(Integers{2, 0, 2, 1}, {2, 2});
  EXPECT_EQ((x[{kAll, at}]).shape(), (Shape{2, 2, 2, 4}));
  EXPECT_EQ(to_doubles(x[{1, at, 3}]), (Doubles{23, 15, 23, 19}));
}

TEST(BracketsError, NamesTheirLine) {
  const Tensor x = counted({3, 4}), other = x + 1;
  int line = 0;
  const auto outside = [&] {
    line = __LINE__ + 1;
    return x[{0, 4}];
  };
  const std::string place = "index: position 4 is out of range for axis 1 of extent 4";
  const std::string found = full_error_text(outside);
  EXPECT_EQ(found, cat(place, " (indexing_test.cpp:", line, ")"));
  line = __LINE__ + 1;
  const Tensor bad = x[tensor(Integers{0, 9})];
  const std::string text = full_error_text([&] { bad.eval(); });
  EXPECT_NE(text.find(cat("(indexing_test.cpp:", line, ")")), std::string::npos) << text;
}

TEST(BracketsError, Texts) {
  const Tensor x = counted({3, 4});
  EXPECT_EQ(error_text([&] { x[3]; }), "index: position 3 is out of range for axis 0 of extent 3");
  EXPECT_EQ(error_text([&] {
              x[{0, -5}];
            }),
            "index: position -5 is out of range for axis 1 of extent 4");
  EXPECT_EQ(error_text([&] { x[{0, 0, 0}]; }), "index: 3 entries are too many for (3, 4)");
  EXPECT_EQ(error_text([&] {
              x[{kEllipsis, kEllipsis}];
            }),
            "index: expected at most one ellipsis, got 2");
  EXPECT_EQ(error_text([&] {
              x[{arange(2), arange(2)}];
            }),
            "index: expected at most one tensor of indices, got 2");
}

TEST(Take, AlongAnyAxis) {
  const Tensor x = counted({2, 3});
  const Tensor at = tensor(std::vector<int32_t>{2, 0, 1, 1}, {2, 2});
  EXPECT_EQ(to_doubles(take(x, at, 1)), (Doubles{2, 0, 1, 1, 5, 3, 4, 4}));
  EXPECT_EQ(take(x, at, 1).shape(), (Shape{2, 2, 2}));
  EXPECT_EQ(to_doubles(take(arange(5), tensor(Integers{4, 4}))), (Doubles{4, 4}));
  EXPECT_EQ(to_doubles(index_select(x, tensor(Integers{2, 2}), -1)), (Doubles{2, 2, 5, 5}));
  EXPECT_EQ(error_text([&] { index_select(x, at, 1); }),
            "index_select: expected a vector of indices, got (2, 2)");
}

TEST(Gather, IndicesMayCoverLessThanX) {
  const Tensor x = counted({3, 4});
  const Tensor index = tensor(Integers{1, 0}, {1, 2});
  EXPECT_EQ(to_doubles(gather(x, index, 0)), (Doubles{4, 1}));
  EXPECT_EQ(error_text([&] {
              gather(x, tensor(Integers{0, 0, 0, 0}, {4, 1}), 1);
            }),
            "gather: indices (4, 1) do not fit (3, 4) outside axis 1");
}

TEST(Scatter, PutsTheLastAndAddsAll) {
  const Tensor x = zeros({4}), at = tensor(Integers{1, 3, 1}),
               v = tensor(std::vector<float>{5, 6, 7});
  EXPECT_EQ(to_doubles(scatter(x, at, v, 0)), (Doubles{0, 7, 0, 6}));
  EXPECT_EQ(to_doubles(scatter_add(x, at, v, 0)), (Doubles{0, 12, 0, 6}));
  // Indices and source that cover a corner of x.
  const Tensor wide = ones({2, 3});
  const Tensor corner = tensor(Integers{2}, {1, 1});
  EXPECT_EQ(to_doubles(scatter(wide, corner, full({2, 2}, 9), 1)), (Doubles{1, 1, 9, 1, 1, 1}));
  EXPECT_EQ(to_doubles(scatter(wide, tensor(Integers{1}, {1, 1}), full({1, 1}, 9), 0)),
            (Doubles{1, 1, 1, 9, 1, 1}));
  EXPECT_EQ(error_text([&] {
              scatter(wide, tensor(Integers{0, 0, 0}, {3, 1}), ones({3, 1}), 1);
            }),
            "scatter: indices (3, 1) do not fit (2, 3) outside axis 1");
}

TEST(IndexPut, OnSeveralAxes) {
  const Tensor x = zeros({2, 3});
  const Tensor rows = tensor(Integers{0, 1, 1}), columns = tensor(Integers{2, 0, 0});
  const Tensor v = tensor(std::vector<float>{1, 2, 3});
  EXPECT_EQ(to_doubles(index_put(x, {rows, columns}, v)), (Doubles{0, 0, 1, 3, 0, 0}));
  EXPECT_EQ(to_doubles(index_put(x, {rows, columns}, v, true)), (Doubles{0, 0, 1, 5, 0, 0}));
  EXPECT_EQ(to_doubles(index_put(x, {tensor(Integers{1})}, tensor(std::vector<float>{4, 5, 6}))),
            (Doubles{0, 0, 0, 4, 5, 6}));
  EXPECT_EQ(to_doubles(index_put(x, {reshape(arange(2), {2, 1}), arange(2)}, scalar(8.f))),
            (Doubles{8, 8, 0, 8, 8, 0}));  // indices broadcast
  // One axis cannot make up for another: (0, 3) is not (1, 0).
  EXPECT_NE(error_text([&] {
              index_put(x, {tensor(Integers{0}), tensor(Integers{3})}, scalar(1.f)).eval();
            }).find("is out of range"),
            std::string::npos);
  EXPECT_EQ(error_text([&] { index_put(x, {}, v); }),
            "index_put: expected 1 to 2 tensors of indices for (2, 3), got 0");
  EXPECT_EQ(error_text([&] { index_put(x, {v}, v); }),
            "index_put: expected integer indices, got f32");
}

TEST(IndexPut, GradientGoesToWhatStayed) {
  const Tensor x = counted({4}), v = tensor(std::vector<float>{1, 2});
  const Tensor at = tensor(Integers{2, 2});
  const Tensor weights = tensor(std::vector<float>{1, 10, 100, 1000});
  const Tensor loss = sum(index_put(x, {at}, v) * weights);
  EXPECT_EQ(to_doubles(grad(loss, x)), (Doubles{1, 10, 0, 1000}));
  EXPECT_EQ(to_doubles(grad(loss, v)), (Doubles{0, 100}));  // the last one won
}

TEST(OneHot, RowsOfAnIdentity) {
  const Tensor hot = one_hot(tensor(std::vector<uint8_t>{2, 0}), 3);
  EXPECT_EQ(hot.dtype(), DType::f32);
  EXPECT_EQ(to_doubles(hot), (Doubles{0, 0, 1, 1, 0, 0}));
  EXPECT_EQ(one_hot(scalar(int64_t{1}), 2, DType::boolean).shape(), (Shape{2}));
  EXPECT_EQ(error_text([] { one_hot(ones({2}), 3); }),
            "one_hot: expected integer indices, got f32");
  EXPECT_EQ(error_text([] { one_hot(arange(2), 0); }), "one_hot: expected at least 1 class, got 0");
}

TEST(Nonzero, CoordinatesInOrder) {
  const Tensor x = tensor(std::vector<float>{0, 1, -0.f, 2, 0, NAN}, {2, 3});
  EXPECT_EQ(nonzero(x).shape(), (Shape{3, 2}));
  EXPECT_EQ(to_doubles(nonzero(x)), (Doubles{0, 1, 1, 0, 1, 2}));
  EXPECT_EQ(nonzero(zeros({2, 2})).shape(), (Shape{0, 2}));
  EXPECT_EQ(nonzero(scalar(3.f)).shape(), (Shape{1, 0}));
  EXPECT_EQ(nonzero(ones({0, 3})).shape(), (Shape{0, 2}));
}

}  // namespace
}  // namespace tessera
