// Arrangements of elements, against numbers worked out by hand and plain loops.
#include "tessera/tensor/structure.h"

#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "tessera/conformance/reference.h"
#include "tessera/tensor/autograd.h"
#include "tessera/tensor/ops.h"

namespace tessera {
namespace {

using Doubles = std::vector<double>;

Tensor counted(const Shape& shape) {
  return reshape(arange(numel(shape), DType::f32), shape).detach();
}

TEST(Structure, FlattenAndViews) {
  const Tensor x = counted({2, 3, 4});
  EXPECT_EQ(flatten(x).shape(), (Shape{24}));
  EXPECT_EQ(flatten(x, 1).shape(), (Shape{2, 12}));
  EXPECT_EQ(flatten(x, 0, 1).shape(), (Shape{6, 4}));
  EXPECT_EQ(flatten(scalar(1.f)).shape(), (Shape{1}));
  EXPECT_EQ(view(x, {4, -1}).shape(), (Shape{4, 6}));
  EXPECT_EQ(squeeze(ones({1, 3, 1, 2, 1})).shape(), (Shape{3, 2}));
  EXPECT_EQ(expand(ones({3, 1}), {2, -1, 4}).shape(), (Shape{2, 3, 4}));
  EXPECT_EQ(error_text([&] { flatten(x, 2, 1); }), "flatten: axis 2 comes behind axis 1");
  EXPECT_EQ(error_text([&] {
              expand(ones({3}), {-1, 3});
            }),
            "expand: -1 stands before the axes of (3,) in (-1, 3)");
}

TEST(Structure, Flip) {
  const Tensor x = counted({2, 3});
  EXPECT_EQ(to_doubles(flip(x, {0, 1})), (Doubles{5, 4, 3, 2, 1, 0}));
  EXPECT_EQ(to_doubles(flip(x, -1)), (Doubles{2, 1, 0, 5, 4, 3}));
  EXPECT_EQ(to_doubles(flip(x, 0)), (Doubles{3, 4, 5, 0, 1, 2}));
}

TEST(Structure, Roll) {
  const Tensor x = counted({2, 3});
  EXPECT_EQ(to_doubles(roll(x, 1, 1)), (Doubles{2, 0, 1, 5, 3, 4}));
  EXPECT_EQ(to_doubles(roll(x, -1, 1)), (Doubles{1, 2, 0, 4, 5, 3}));
  EXPECT_EQ(to_doubles(roll(x, 7, -1)), (Doubles{2, 0, 1, 5, 3, 4}));
  EXPECT_EQ(to_doubles(roll(x, {1, 1}, {0, 1})), (Doubles{5, 3, 4, 2, 0, 1}));
  EXPECT_EQ(roll(zeros({0, 2}), 1, 0).shape(), (Shape{0, 2}));
  EXPECT_EQ(error_text([&] {
              roll(x, {1}, {0, 1});
            }),
            "roll: expected a shift for each axis, got (1,) for (0, 1)");
}

TEST(Structure, SplitAndChunk) {
  const Tensor x = counted({5, 2});
  const std::vector<Tensor> parts = split(x, 2);
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(to_doubles(parts[1]), (Doubles{4, 5, 6, 7}));
  EXPECT_EQ(parts[2].shape(), (Shape{1, 2}));
  const std::vector<Tensor> sized = split(x, {1, 0, 4});
  EXPECT_EQ(sized[1].shape(), (Shape{0, 2}));
  EXPECT_EQ(to_doubles(sized[2])[0], 2);
  EXPECT_EQ(chunk(x, 2)[0].shape(), (Shape{3, 2}));
  EXPECT_EQ(chunk(x, 4).size(), 3u);  // of 2, 2 and 1, as PyTorch
  EXPECT_EQ(chunk(x, 2, 1)[1].shape(), (Shape{5, 1}));
  EXPECT_EQ(split(zeros({0, 2}), 3).size(), 1u);
  EXPECT_EQ(split(x, INT64_MAX).size(), 1u);
  EXPECT_EQ(error_text([&] { split(x, 0); }), "split: expected parts of at least 1, got 0");
  EXPECT_EQ(error_text([&] { chunk(x, 0); }), "chunk: expected at least 1 part, got 0");
  for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{2, 2}, {3, 3}, {-1, 6}}) {
    EXPECT_EQ(error_text([&] { split(x, sizes); }),
              cat("split: sizes (", sizes[0], ", ", sizes[1], ") do not make up axis 0 of (5, 2)"));
  }
}

TEST(Structure, RepeatAndTile) {
  const Tensor x = counted({2, 2});
  EXPECT_EQ(to_doubles(repeat(x, {1, 2})), (Doubles{0, 1, 0, 1, 2, 3, 2, 3}));
  EXPECT_EQ(to_doubles(repeat(x, {2, 1})), (Doubles{0, 1, 2, 3, 0, 1, 2, 3}));
  EXPECT_EQ(repeat(x, {3, 1, 2}).shape(), (Shape{3, 2, 4}));
  EXPECT_EQ(tile(x, {2}).shape(), (Shape{2, 4}));
  EXPECT_EQ(repeat(x, {0, 1}).shape(), (Shape{0, 2}));
  EXPECT_EQ(repeat(ones({1, 1, 1, 1, 1, 1, 1, 2}), {2, 2, 2, 2, 2, 2, 2, 2}).numel(), 512);
  EXPECT_EQ(to_doubles(repeat_interleave(x, 2, 1)), (Doubles{0, 0, 1, 1, 2, 2, 3, 3}));
  EXPECT_EQ(to_doubles(repeat_interleave(x, 2, 0)), (Doubles{0, 1, 0, 1, 2, 3, 2, 3}));
  EXPECT_EQ(error_text([&] { repeat(x, {2}); }),
            "repeat: expected at least 2 repeats for (2, 2), got (2,)");
  EXPECT_EQ(error_text([&] {
              repeat(x, {2, -1});
            }),
            "repeat: expected repeats of at least 0, got (2, -1)");
  EXPECT_EQ(error_text([&] { repeat_interleave(x, -1, 0); }),
            "repeat_interleave: expected repeats of at least 0, got -1");
}

TEST(Structure, Diagonals) {
  const Tensor v = tensor(std::vector<float>{1, 2});
  EXPECT_EQ(to_doubles(diag(v)), (Doubles{1, 0, 0, 2}));
  EXPECT_EQ(to_doubles(diag(v, 1)), (Doubles{0, 1, 0, 0, 0, 2, 0, 0, 0}));
  EXPECT_EQ(to_doubles(diag(v, -1)), (Doubles{0, 0, 0, 1, 0, 0, 0, 2, 0}));
  const Tensor m = counted({3, 4});
  EXPECT_EQ(to_doubles(diag(m)), (Doubles{0, 5, 10}));
  EXPECT_EQ(to_doubles(diag(m, 1)), (Doubles{1, 6, 11}));
  EXPECT_EQ(to_doubles(diag(m, 3)), (Doubles{3}));
  EXPECT_EQ(to_doubles(diag(m, -2)), (Doubles{8}));
  EXPECT_EQ(diag(m, 9).shape(), (Shape{0}));
  EXPECT_EQ(to_doubles(grad(sum(diag(m, 1) * tensor(std::vector<float>{1, 2, 3})), m)),
            (Doubles{0, 1, 0, 0, 0, 0, 2, 0, 0, 0, 0, 3}));
  EXPECT_EQ(error_text([] {
              diag(ones({1, 2, 3}));
            }),
            "diag: expected 1 or 2 dimensions, got (1, 2, 3)");
}

TEST(Structure, FarDiagonalsAndFlatsAreRefused) {
  EXPECT_EQ(diag(tensor(std::vector<bool>{true, false})).dtype(), DType::boolean);
  EXPECT_EQ(error_text([] { diag(ones({2}), INT64_MIN); }),
            "diag: offset -9223372036854775808 is too far");
  const int64_t big = int64_t{1} << 40;
  EXPECT_NE(error_text([&] { flatten(zeros({big, big, 0}), 0, 1); }), "");
  EXPECT_EQ(error_text([] { pad(ones({2}, DType::u8), {1}, {0}, 300); }),
            "literal: 300 does not fit u8");
}

TEST(Structure, Triangles) {
  const Tensor m = counted({3, 3}) + 1;
  EXPECT_EQ(to_doubles(tril(m)), (Doubles{1, 0, 0, 4, 5, 0, 7, 8, 9}));
  EXPECT_EQ(to_doubles(triu(m)), (Doubles{1, 2, 3, 0, 5, 6, 0, 0, 9}));
  EXPECT_EQ(to_doubles(triu(m, 1)), (Doubles{0, 2, 3, 0, 0, 6, 0, 0, 0}));
  EXPECT_EQ(to_doubles(tril(m, -1)), (Doubles{0, 0, 0, 4, 0, 0, 7, 8, 0}));
  EXPECT_EQ(tril(ones({2, 3, 4}, DType::boolean)).dtype(), DType::boolean);
  EXPECT_EQ(sum(tril(ones({2, 3, 4}))).item(), 12);
  EXPECT_EQ(error_text([] { triu(ones({3})); }), "triu: expected at least 2 dimensions, got (3,)");
}

TEST(Structure, SlidingWindows) {
  const Tensor x = counted({2, 6});
  const Tensor windows = sliding_window(x, 1, 3, 2);
  EXPECT_EQ(windows.shape(), (Shape{2, 2, 3}));
  EXPECT_EQ(to_doubles(windows), (Doubles{0, 1, 2, 2, 3, 4, 6, 7, 8, 8, 9, 10}));
  // A convolution of two axes, and its gradient by plain loops.
  const Tensor image = random_tensor({5, 6}, 1), weight = random_tensor({2, 3}, 2);
  const Tensor patches = sliding_window(sliding_window(image, 0, 2), 1, 3);  // (4, 4, 2, 3)
  const Tensor y = sum(patches * weight, {-2, -1});
  const Doubles image_data = to_doubles(image), weight_data = to_doubles(weight);
  const Doubles got = to_doubles(y), slope = to_doubles(grad(sum(square(y)), image));
  Doubles expected(30);
  for (int r = 0; r < 4; ++r) {
    for (int c = 0; c < 4; ++c) {
      double total = 0;
      for (int i = 0; i < 6; ++i) {
        total += image_data[size_t((r + i / 3) * 6 + c + i % 3)] * weight_data[size_t(i)];
      }
      EXPECT_NEAR(got[size_t(r * 4 + c)], total, 1e-5);
      for (int i = 0; i < 6; ++i) {
        expected[size_t((r + i / 3) * 6 + c + i % 3)] += 2 * total * weight_data[size_t(i)];
      }
    }
  }
  for (size_t i = 0; i < 30; ++i) EXPECT_NEAR(slope[i], expected[i], 1e-4);
}

TEST(Creation, Ranges) {
  EXPECT_EQ(to_doubles(arange(2, 7)), (Doubles{2, 3, 4, 5, 6}));
  EXPECT_EQ(to_doubles(arange(7, 2, -2)), (Doubles{7, 5, 3}));
  EXPECT_EQ(to_doubles(arange(0.0, 1.0, 0.25, DType::f32)), (Doubles{0, 0.25, 0.5, 0.75}));
  EXPECT_EQ(to_doubles(arange(0, 1, 0.5)), (Doubles{0, 0.5}));
  EXPECT_EQ(arange(0, 1, 0.5).dtype(), DType::f32);
  EXPECT_EQ(arange(0, 2.5).dtype(), DType::f32);
  EXPECT_EQ(arange(3, 3).shape(), (Shape{0}));
  EXPECT_EQ(arange(5, 3).shape(), (Shape{0}));
  EXPECT_EQ(arange(0, 3, 1, DType::bf16).dtype(), DType::bf16);
  EXPECT_EQ(to_doubles(arange(int64_t{1} << 60, (int64_t{1} << 60) + 2) % 1000),
            (Doubles{976, 977}));
  const Doubles line = to_doubles(linspace(0.1, 0.7, 7, DType::f64));
  for (size_t i = 0; i < 7; ++i) EXPECT_NEAR(line[i], 0.1 + 0.1 * double(i), 1e-15);
  EXPECT_EQ(line[6], 0.7);
  EXPECT_EQ(to_doubles(linspace(3, 9, 1)), (Doubles{3}));
  EXPECT_EQ(linspace(3, 9, 0).shape(), (Shape{0}));
  EXPECT_EQ(error_text([] { arange(0, 1, 0); }),
            "arange: expected finite bounds and a step other than 0, got 0, 1 and 0");
  EXPECT_EQ(error_text([] { linspace(0, 1, -1); }),
            "linspace: expected at least 0 numbers, got -1");
  EXPECT_EQ(error_text([] { linspace(0, 1, 2, DType::i32); }),
            "linspace: expected a floating-point dtype, got i32");
}

TEST(Creation, OfANegativeExtent) {
  const int line = __LINE__ + 1;
  EXPECT_EQ(
      full_error_text([] {
        zeros({2, -1});
      }),
      cat("full: expected extents of at least 0, got (2, -1) (structure_test.cpp:", line, ")"));
  EXPECT_EQ(ones(3).shape(), (Shape{3}));
}

TEST(Creation, LikeAnother) {
  const Tensor x = ones({2, 3}, DType::f16);
  EXPECT_EQ(zeros_like(x).dtype(), DType::f16);
  EXPECT_EQ(to_doubles(full_like(x, 2.5)), Doubles(6, 2.5));
  EXPECT_EQ(ones_like(x).shape(), x.shape());
  EXPECT_EQ(to_doubles(eye(2)), (Doubles{1, 0, 0, 1}));
  EXPECT_EQ(to_doubles(eye(2, 3, DType::i32)), (Doubles{1, 0, 0, 0, 1, 0}));
  EXPECT_EQ(error_text([] { eye(-1); }), "eye: expected extents of at least 0, got -1 and -1");
}

}  // namespace
}  // namespace tessera
