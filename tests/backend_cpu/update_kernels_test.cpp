// scatter_add, scatter, update_slice and copy against plain loops.
#include <gtest/gtest.h>

#include <cmath>

#include "backend_cpu/named_kernels.h"
#include "backend_cpu/threads.h"

namespace tessera::test {
namespace {

double tolerance(DType dtype) {
  switch (dtype) {
    case DType::f32: return 1e-5;
    case DType::f64: return 1e-13;
    case DType::f16: return 2e-3;
    default: return 1.6e-2;
  }
}

// y[…, index[p], …] += src[p], or = src[p], one at a time.
std::vector<double> scatter(const std::vector<Operand>& o, int axis, bool adds = true) {
  const Shape &x = o[0].view.shape, &s = o[2].view.shape;
  std::vector<double> y;
  for (int64_t i = 0; i < numel(x); ++i) y.push_back(at(o[0], i));
  for (int64_t i = 0; i < numel(s); ++i) {
    int64_t rest = i, target = 0, scale = 1;
    for (int d = s.rank() - 1; d >= 0; --d) {
      const int64_t coordinate = d == axis ? int64_t(at(o[1], i)) : rest % s[d];
      rest /= s[d];
      target += coordinate * scale;
      scale *= x[d];
    }
    y[size_t(target)] = at(o[2], i) + (adds ? y[size_t(target)] : 0);
  }
  return y;
}

std::vector<Operand> scatter_operands(DType dtype, Shape x, Shape src, int axis, DType index) {
  const double low = info(dtype).is_signed ? -3 : 0;
  return {dense(random_array(dtype, numel(x), low, 3, 1), x),
          dense(random_array(index, numel(src), 0, double(x[axis]), 2), src),
          dense(random_array(dtype, numel(src), low, 3, 3), src), dense(Array(dtype, numel(x)), x)};
}

void expect_scatter(std::vector<Operand>& o, int axis) {
  const std::vector<double> expected = scatter(o, axis);
  call("scatter_add", o, 1, {axis, 0});
  const DType dtype = o[0].array.dtype();
  for (size_t i = 0; i < expected.size(); ++i) {
    const double got = at(o[3], int64_t(i));
    const double allowed =
        is_float(dtype) ? tolerance(dtype) * std::max(1.0, std::abs(expected[i])) : 0;
    ASSERT_NEAR(got, expected[i], allowed) << name(dtype) << " axis " << axis << " at " << i;
  }
}

TEST(ScatterAdd, EveryAxisAndType) {
  for (DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i32, DType::i64,
                      DType::i8, DType::u8, DType::u32}) {
    for (int axis = 0; axis < 3; ++axis) {
      Shape src = {4, 5, 6};
      src[axis] = 9;
      for (DType index : {DType::i64, DType::i32, DType::u8, DType::i8, DType::u32}) {
        auto o = scatter_operands(dtype, {4, 5, 6}, src, axis, index);
        expect_scatter(o, axis);
      }
    }
  }
}

TEST(ScatterAdd, RowsOfATable) {
  // The gradient of an embedding: the index does not move along the row.
  auto o = scatter_operands(DType::f32, {50, 300}, {2000, 300}, 0, DType::i64);
  o[1].view.strides = {1, 0};
  expect_scatter(o, 0);
  auto p = o;
  run_alone([&] { call("scatter_add", p, 1, {0, 0}); });
  EXPECT_EQ(o[3].array.bytes(), p[3].array.bytes());
}

// One narrow line: the threads share the axis, not the width.
TEST(ScatterAdd, NarrowLines) {
  for (DType dtype : {DType::f64, DType::i32, DType::u8}) {
    for (const int64_t width : {1, 3, 40}) {
      auto o = scatter_operands(dtype, {700, width}, {60000 / width, width}, 0, DType::i32);
      if (dtype != DType::u8) expect_scatter(o, 0);  // whose sums wrap
      call("scatter_add", o, 1, {0, 0});
      auto p = o;
      run_alone([&] { call("scatter_add", p, 1, {0, 0}); });
      EXPECT_EQ(o[3].array.bytes(), p[3].array.bytes());
    }
  }
  auto o = scatter_operands(DType::f64, {2}, {50000}, 0, DType::i64);
  expect_scatter(o, 0);
}

TEST(ScatterAdd, StridedOperandsAndInPlace) {
  auto o = scatter_operands(DType::f32, {6, 7}, {6, 7}, 1, DType::i64);
  o[2].view = {{6, 7}, {-7, -1}, 41};
  o[3].view = {{6, 7}, {1, 6}, 0};
  expect_scatter(o, 1);

  auto p = scatter_operands(DType::f32, {6, 7}, {6, 3}, 1, DType::i64);
  const std::vector<double> expected = scatter(p, 1);
  const auto executable = test_backend().compile(make_call("scatter_add", p, 1, {1, 0}));
  const BufferRef x = {p[0].array.data(), 0};
  test_backend().launch(
      *executable, std::vector<BufferRef>{x, {p[1].array.data(), 0}, {p[2].array.data(), 0}, x}, 0,
      Stream{});
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(p[0].array.get(int64_t(i)), expected[i], 1e-5);
  }
}

TEST(ScatterAdd, NothingToAddCopies) {
  auto o = scatter_operands(DType::f32, {3, 4}, {0, 4}, 0, DType::i64);
  expect_scatter(o, 0);
}

TEST(ScatterAdd, Refuses) {
  auto o = scatter_operands(DType::f32, {5, 4}, {2, 4}, 0, DType::i64);
  const std::vector<char> before = o[3].array.bytes();
  o[1].array.set(7, 5);
  EXPECT_EQ(error_of([&] {
              call("scatter_add", o, 1, {0, 0});
            }),
            "scatter_add: index 5 is out of range [0, 5)");
  EXPECT_EQ(o[3].array.bytes(), before);  // looked at before y is touched
  o[1].array.set(7, -1);
  EXPECT_EQ(error_of([&] {
              call("scatter_add", o, 1, {0, 0});
            }),
            "scatter_add: index -1 is out of range [0, 5)");
  EXPECT_EQ(error_of([&] {
              call("scatter_add", o, 1, {2, 0});
            }),
            "scatter_add: expected an axis in [0, 2), got 2");
  EXPECT_EQ(error_of([&] {
              call("scatter_add", o, 1, {1, 0});
            }),
            "scatter_add: expected indices that agree with (5, 4) beside axis 1, got (2, 4)");
  o[1] = dense(Array(DType::f32, 8), {2, 4});
  EXPECT_EQ(error_of([&] {
              call("scatter_add", o, 1, {0, 0});
            }),
            "scatter_add: expected index of an integer type, got f32");
  auto bools = scatter_operands(DType::f32, {5}, {2}, 0, DType::i64);
  bools[0] = dense(Array(DType::boolean, 5), {5});
  EXPECT_EQ(error_of([&] {
              call("scatter_add", bools, 1, {0, 0});
            }),
            "scatter_add: expected a numeric type, got bool");
}

TEST(Scatter, TheLastOneWinsInEveryTypeAndAxis) {
  for (DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i32, DType::i64,
                      DType::i8, DType::u8, DType::u32, DType::boolean}) {
    for (int axis = 0; axis < 3; ++axis) {
      Shape src = {4, 5, 6};
      src[axis] = 20;  // more than there are places: they meet
      auto o = scatter_operands(dtype, {4, 5, 6}, src, axis, DType::i64);
      const std::vector<double> expected = scatter(o, axis, false);
      call("scatter", o, 1, {axis, 0});
      for (size_t i = 0; i < expected.size(); ++i) {
        ASSERT_EQ(at(o[3], int64_t(i)), expected[i]) << name(dtype) << " axis " << axis;
      }
    }
  }
}

TEST(Scatter, AnyNumberOfThreadsGivesTheSame) {
  auto o = scatter_operands(DType::f32, {50, 300}, {2000, 300}, 0, DType::i64);
  o[1].view.strides = {1, 0};
  auto p = o;
  call("scatter", o, 1, {0, 0});
  run_alone([&] { call("scatter", p, 1, {0, 0}); });
  EXPECT_EQ(o[3].array.bytes(), p[3].array.bytes());
}

TEST(Scatter, InPlaceLeavesTheRest) {
  auto p = scatter_operands(DType::bf16, {6, 7}, {6, 3}, 1, DType::i64);
  const std::vector<double> expected = scatter(p, 1, false);
  const auto executable = test_backend().compile(make_call("scatter", p, 1, {1, 0}));
  const BufferRef x = {p[0].array.data(), 0};
  test_backend().launch(
      *executable, std::vector<BufferRef>{x, {p[1].array.data(), 0}, {p[2].array.data(), 0}, x}, 0,
      Stream{});
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(p[0].array.get(int64_t(i)), expected[i]);
  }
}

TEST(Scatter, Refuses) {
  auto o = scatter_operands(DType::f32, {5, 4}, {2, 4}, 0, DType::i64);
  o[1].array.set(7, 5);
  EXPECT_EQ(error_of([&] {
              call("scatter", o, 1, {0, 0});
            }),
            "scatter: index 5 is out of range [0, 5)");
  EXPECT_EQ(error_of([&] {
              call("scatter", o, 1, {1, 0});
            }),
            "scatter: expected indices that agree with (5, 4) beside axis 1, got (2, 4)");
}

std::vector<Operand> slice_operands(DType dtype, int64_t start) {
  Array s(DType::i32, 1);
  s.set(0, double(start));
  return {dense(random_array(dtype, 60, 0, 2, 1), {3, 10, 2}),
          dense(random_array(dtype, 24, 3, 5, 2), {3, 4, 2}), dense(s, {}),
          dense(Array(dtype, 60), {3, 10, 2})};
}

TEST(UpdateSlice, PlacesTheUpdate) {
  for (DType dtype : {DType::f32, DType::bf16, DType::i64, DType::u8}) {
    for (int64_t start : {0, 3, 6}) {
      auto o = slice_operands(dtype, start);
      call("update_slice", o, 1, {1, 0});
      for (int64_t i = 0; i < 60; ++i) {
        const int64_t row = i / 20, middle = i / 2 % 10 - start;
        const bool inside = middle >= 0 && middle < 4;
        const double expected =
            inside ? o[1].array.get(row * 8 + middle * 2 + i % 2) : o[0].array.get(i);
        EXPECT_EQ(o[3].array.get(i), expected);
      }
    }
  }
}

TEST(UpdateSlice, InPlaceWritesOnlyTheSlice) {
  auto o = slice_operands(DType::f32, 5);
  auto expected = o;
  call("update_slice", expected, 1, {1, 0});
  const auto executable = test_backend().compile(make_call("update_slice", o, 1, {1, 0}));
  const BufferRef x = {o[0].array.data(), 0};
  const std::vector<BufferRef> refs = {x, {o[1].array.data(), 0}, {o[2].array.data(), 0}, x};
  test_backend().launch(*executable, refs, 0, Stream{});
  EXPECT_EQ(o[0].array.bytes(), expected[3].array.bytes());
}

TEST(UpdateSlice, Refuses) {
  for (int64_t start : {-1, 7}) {
    auto o = slice_operands(DType::f32, start);
    EXPECT_EQ(error_of([&] {
                call("update_slice", o, 1, {1, 0});
              }),
              cat("update_slice: start ", start, " is out of range [0, 6]"));
  }
  auto o = slice_operands(DType::f32, 0);
  o[1] = dense(Array(DType::f32, 66), {3, 11, 2});
  EXPECT_EQ(error_of([&] {
              call("update_slice", o, 1, {1, 0});
            }),
            "update_slice: expected an update that fits (3, 10, 2), got (3, 11, 2)");
}

TEST(Copy, AnyStridesAndTypes) {
  for (DType dtype :
       {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i8, DType::i64, DType::boolean}) {
    for (Shape shape :
         {Shape{}, Shape{0, 3}, Shape{3, 0}, Shape{7}, Shape{70, 90}, Shape{2, 3, 4, 5}}) {
      const int64_t n = numel(shape);
      Operand x = dense(random_array(dtype, std::max<int64_t>(1, n), 0, 2), shape);
      Operand y = dense(Array(dtype, std::max<int64_t>(1, n)), shape);
      // The dimensions reversed, and walked backwards.
      int64_t stride = 1;
      for (int d = 0; d < shape.rank(); ++d) {
        x.view.strides[d] = -stride;
        stride *= shape[d];
      }
      x.view.offset = std::max<int64_t>(0, n - 1);
      std::vector<Operand> o = {x, y};
      call("copy", o, 1);
      for (int64_t i = 0; i < n; ++i) ASSERT_EQ(at(o[1], i), at(o[0], i)) << to_string(shape);
    }
  }
}

}  // namespace
}  // namespace tessera::test
