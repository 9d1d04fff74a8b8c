// cumsum, cumprod, sort and topk against plain loops and std::stable_sort.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "backend_cpu/named_kernels.h"
#include "backend_cpu/threads.h"

namespace tessera::test {
namespace {

const DType kNumbers[] = {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i8,
                          DType::i32, DType::i64, DType::u8,  DType::u32};
const DType kAll[] = {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i8,
                      DType::i32, DType::i64, DType::u8,  DType::u32,  DType::boolean};

double tolerance(DType dtype) {
  switch (dtype) {
    case DType::f32: return 1e-6;
    case DType::f64: return 1e-14;
    case DType::f16: return 1e-3;
    default: return is_float(dtype) ? 8e-3 : 0;
  }
}

// Totals of o[0] along the axis, element by element of o[1].
void expect_scan(const std::string& kernel, std::vector<Operand> o, int axis) {
  call(kernel, o, 1, {axis, 0});
  const Shape& shape = o[0].view.shape;
  const int64_t step = row_major_strides(shape)[axis];
  std::vector<double> total(size_t(numel(shape)));
  for (int64_t i = 0; i < numel(shape); ++i) {
    total[size_t(i)] = at(o[0], i);
    if (i / step % shape[axis] > 0) {
      const double before = total[size_t(i - step)];
      total[size_t(i)] = kernel == "cumsum" ? before + total[size_t(i)] : before * total[size_t(i)];
    }
    const double expected = total[size_t(i)];
    const double allowed = tolerance(o[0].array.dtype()) * std::max(1.0, std::abs(expected));
    ASSERT_NEAR(at(o[1], i), expected, allowed)
        << kernel << " " << name(o[0].array.dtype()) << to_string(shape) << " axis " << axis;
  }
}

std::vector<Operand> scan_operands(DType dtype, const Shape& shape) {
  // Small whole numbers: no total leaves i8, few products do.
  return {dense(random_array(dtype, numel(shape), 0, 2, 1), shape),
          dense(Array(dtype, numel(shape)), shape)};
}

TEST(Scan, EveryAxisAndType) {
  for (const DType dtype : kNumbers) {
    for (int axis = 0; axis < 3; ++axis) {
      expect_scan("cumsum", scan_operands(dtype, {4, 5, 6}), axis);
      expect_scan("cumprod", scan_operands(dtype, {4, 5, 6}), axis);
    }
    expect_scan("cumsum", scan_operands(dtype, {1}), 0);
    expect_scan("cumsum", scan_operands(dtype, {3, 1}), 1);
    expect_scan("cumsum", scan_operands(dtype, {0, 3}), 1);
    expect_scan("cumsum", scan_operands(dtype, {3, 0}), 1);
  }
}

TEST(Scan, ViewsAreReadWhereTheyLie) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::i64}) {
    for (int axis = 0; axis < 2; ++axis) {
      auto turned = scan_operands(dtype, {70, 90});
      turned[0].view.strides = {1, 70};
      expect_scan("cumsum", turned, axis);
      auto reversed = scan_operands(dtype, {70, 90});
      reversed[0].view = {{70, 90}, {-90, -1}, 70 * 90 - 1};
      expect_scan("cumsum", reversed, axis);
      auto repeated = scan_operands(dtype, {20, 9});
      repeated[0].view.strides = {0, 1};
      expect_scan("cumsum", repeated, axis);
      auto scattered = scan_operands(dtype, {70, 90});
      scattered[1].view.strides = {1, 70};
      expect_scan("cumsum", scattered, axis);
    }
  }
}

TEST(Scan, AnyNumberOfThreadsGivesTheSame) {
  for (const int64_t axis : {0, 1}) {
    auto o = scan_operands(DType::f32, {300, 400});
    auto p = o;
    call("cumsum", o, 1, {axis, 0});
    run_alone([&] { call("cumsum", p, 1, {axis, 0}); });
    EXPECT_EQ(o[1].array.bytes(), p[1].array.bytes());
  }
}

// Cut into pieces: the first, the last and the ones between, and lines that end with a piece.
TEST(Scan, LongLinesInPieces) {
  for (const int64_t n : {int64_t(8 * 4160), int64_t(100003), int64_t(1) << 20}) {
    for (const DType dtype : {DType::f32, DType::f64, DType::i32, DType::i64}) {
      SCOPED_TRACE(cat(n, " of ", dtype));
      auto o = scan_operands(dtype, {n});
      expect_scan("cumsum", o, 0);
      auto p = o;
      call("cumsum", o, 1, {0, 0});
      run_alone([&] { call("cumsum", p, 1, {0, 0}); });
      EXPECT_EQ(o[1].array.bytes(), p[1].array.bytes());
    }
  }
  Array zeros(DType::f32, 50000);
  for (int64_t i = 0; i < 50000; ++i) zeros.set(i, -0.0);
  std::vector<Operand> o = {dense(zeros, {50000}), dense(Array(DType::f32, 50000), {50000})};
  call("cumsum", o, 1);
  for (int64_t i : {0, 4159, 4160, 33280, 49999}) EXPECT_TRUE(std::signbit(at(o[1], i))) << i;
}

// A product of one piece may overflow where the product from the start has long been 0.
TEST(Scan, LongProductsAreNotCut) {
  Array x(DType::f32, 40000);
  for (int64_t i = 0; i < 40000; ++i) x.set(i, i < 20000 ? 1e-30 : 1e30);
  std::vector<Operand> o = {dense(x, {40000}), dense(Array(DType::f32, 40000), {40000})};
  call("cumprod", o, 1);
  EXPECT_EQ(at(o[1], 39999), 0);
}

TEST(Scan, LongTotalsAreAccumulatedWide) {
  constexpr int64_t kCount = 1 << 20;
  Array tenths(DType::f32, kCount), halves(DType::bf16, 1024);
  for (int64_t i = 0; i < kCount; ++i) tenths.set(i, 0.1);
  std::vector<Operand> o = {dense(tenths, {kCount}), dense(Array(DType::f32, kCount), {kCount})};
  call("cumsum", o, 1);
  const double exact = double(0.1f) * double(kCount);
  EXPECT_NEAR(at(o[1], kCount - 1), exact, 1e-7 * exact);
  // In bf16 itself a total of ones would stop at 256.
  for (int64_t i = 0; i < 1024; ++i) halves.set(i, 1);
  std::vector<Operand> p = {dense(halves, {1024}), dense(Array(DType::bf16, 1024), {1024})};
  call("cumsum", p, 1);
  EXPECT_EQ(at(p[1], 1023), 1024);
}

TEST(Scan, IntegersWrapAndZerosKeepTheirSign) {
  Array bytes(DType::i8, 4);
  for (int64_t i = 0; i < 4; ++i) bytes.set(i, 100);
  std::vector<Operand> o = {dense(bytes, {4}), dense(Array(DType::i8, 4), {4})};
  call("cumsum", o, 1);
  EXPECT_EQ(at(o[1], 1), -56);
  EXPECT_EQ(at(o[1], 3), -112);
  call("cumprod", o, 1);
  EXPECT_EQ(at(o[1], 1), 16);  // 10000 mod 256
  Array zeros(DType::f32, 2);
  for (int64_t i = 0; i < 2; ++i) zeros.set(i, -0.0);
  std::vector<Operand> p = {dense(zeros, {2}), dense(Array(DType::f32, 2), {2})};
  call("cumsum", p, 1);
  EXPECT_TRUE(std::signbit(at(p[1], 0)) && std::signbit(at(p[1], 1)));
}

TEST(Scan, Refuses) {
  auto o = scan_operands(DType::f32, {2, 3});
  EXPECT_EQ(error_of([&] {
              call("cumsum", o, 1, {2, 0});
            }),
            "cumsum: expected an axis in [0, 2), got 2");
  o[0] = dense(Array(DType::boolean, 6), {2, 3});
  EXPECT_EQ(error_of([&] { call("cumprod", o, 1); }),
            "cumprod: expected x of a numeric type, got bool");
}

// Sorting -----------------------------------------------------------------------------------------

bool less(double a, double b) { return a < b || (std::isnan(b) && !std::isnan(a)); }

// Where the first `k` elements of a row in order are.
std::vector<int64_t> order(const Operand& x, int64_t row, int64_t k, bool descending) {
  const int64_t n = x.view.shape.back();
  std::vector<double> values;
  std::vector<int64_t> places(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) values.push_back(at(x, row * n + i));
  std::iota(places.begin(), places.end(), 0);
  std::stable_sort(places.begin(), places.end(), [&](int64_t i, int64_t j) {
    const double a = values[size_t(i)], b = values[size_t(j)];
    return descending ? less(b, a) : less(a, b);
  });
  places.resize(size_t(k));
  return places;
}

std::vector<Operand> order_operands(Operand x, int64_t k) {
  Shape shape = x.view.shape;
  shape[shape.rank() - 1] = k;
  const DType dtype = x.array.dtype();
  return {std::move(x), dense(Array(dtype, numel(shape)), shape),
          dense(Array(DType::i64, numel(shape)), shape)};
}

void expect_ordered(const std::string& kernel, std::vector<Operand> o, bool descending) {
  call(kernel, o, 2, {descending, 0});
  const int64_t n = o[0].view.shape.back(), k = o[1].view.shape.back();
  const int64_t rows = n == 0 ? 0 : numel(o[0].view.shape) / n;
  for (int64_t row = 0; row < rows; ++row) {
    const std::vector<int64_t> places = order(o[0], row, k, descending);
    for (int64_t i = 0; i < k; ++i) {
      ASSERT_EQ(at(o[2], row * k + i), double(places[size_t(i)]))
          << kernel << " " << name(o[0].array.dtype()) << to_string(o[0].view.shape) << " row "
          << row << " at " << i;
      const double expected = at(o[0], row * n + places[size_t(i)]), got = at(o[1], row * k + i);
      ASSERT_TRUE(std::isnan(expected)
                      ? std::isnan(got)
                      : got == expected && std::signbit(got) == std::signbit(expected));
    }
  }
}

// Few different values, so that many are equal; floats with all kinds of specials.
Array mixed_array(DType dtype, int64_t count, int seed = 1) {
  Array array = random_array(dtype, count, info(dtype).is_signed ? -9 : 0,
                             dtype == DType::boolean ? 1 : 9, seed);
  if (!is_float(dtype)) return array;
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  const double specials[] = {std::nan(""), -std::nan(""), 0.0, -0.0, kInfinite, -kInfinite};
  for (int64_t i = 0; i < count; ++i) array.set(i, std::round(array.get(i)));
  for (int64_t i = 0; i < count; i += 5) array.set(i, specials[i / 5 % 6]);
  return array;
}

TEST(Sort, EveryTypeAndLength) {
  for (const DType dtype : kAll) {
    for (const bool descending : {false, true}) {
      for (const int64_t n : {1, 2, 7, 100, 256, 257, 1000}) {
        expect_ordered("sort", order_operands(dense(mixed_array(dtype, 3 * n), {3, n}), n),
                       descending);
      }
      expect_ordered("sort", order_operands(dense(Array(dtype, 0), {0, 5}), 5), descending);
      expect_ordered("sort", order_operands(dense(Array(dtype, 0), {5, 0}), 0), descending);
    }
  }
}

TEST(Sort, NumbersOfEverySize) {
  Array array(DType::f64, 2000);
  for (int64_t i = 0; i < 2000; ++i) {
    array.set(i, (i % 2 ? -1 : 1) * std::ldexp(1.0 + double(i) / 5000, int(i * 37 % 2100) - 1070));
  }
  expect_ordered("sort", order_operands(dense(array, {2000}), 2000), false);
  expect_ordered("topk", order_operands(dense(array, {2000}), 50), true);
}

TEST(Sort, ViewsAreReadWhereTheyLie) {
  for (const DType dtype : {DType::f32, DType::u8, DType::i64}) {
    auto turned = order_operands(dense(mixed_array(dtype, 30 * 40), {30, 40}), 40);
    turned[0].view.strides = {1, 30};
    expect_ordered("sort", turned, false);
    auto reversed = order_operands(dense(mixed_array(dtype, 30 * 40), {2, 15, 40}), 40);
    reversed[0].view = {{2, 15, 40}, {-600, -40, -1}, 1199};
    expect_ordered("sort", reversed, true);
    auto repeated = order_operands(dense(mixed_array(dtype, 30), {30, 40}), 40);
    repeated[0].view.strides = {1, 0};
    expect_ordered("sort", repeated, true);
  }
}

TEST(Sort, ColumnsInBlocks) {
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::u8}) {
    for (const int64_t columns : {1, 15, 16, 37}) {
      for (const int64_t length : {5, 64, 300, 9000}) {
        auto o =
            order_operands(dense(mixed_array(dtype, columns * length), {columns, length}), length);
        o[0].view.strides = {1, columns};
        o[1].view.strides = {1, columns};
        expect_ordered("sort", o, columns % 2 == 0);
      }
    }
  }
}

TEST(Sort, LongRowsInParts) {
  for (const DType dtype : {DType::f32, DType::f16, DType::i64, DType::u8}) {
    for (const int64_t n : {int64_t(65536), int64_t(100003), int64_t(1) << 20}) {
      auto o = order_operands(dense(mixed_array(dtype, n), {n}), n);
      if (n == 100003 || dtype == DType::f32) expect_ordered("sort", o, true);
      auto p = o;
      call("sort", o, 2, {0, 0});
      run_alone([&] { call("sort", p, 2, {0, 0}); });
      EXPECT_EQ(o[1].array.bytes(), p[1].array.bytes());
      EXPECT_EQ(o[2].array.bytes(), p[2].array.bytes());
    }
  }
}

TEST(TopK, EveryTypeAndLength) {
  for (const DType dtype : kAll) {
    for (const bool largest : {false, true}) {
      for (const int64_t n : {1, 2, 7, 100, 1000}) {
        for (const int64_t k : {int64_t(0), int64_t(1), n / 8, n / 2, n}) {
          expect_ordered("topk", order_operands(dense(mixed_array(dtype, 3 * n), {3, n}), k),
                         largest);
        }
      }
    }
  }
}

TEST(TopK, LongRowsInParts) {
  for (const int64_t k : {1, 10, 500, 60000}) {
    expect_ordered("topk", order_operands(dense(mixed_array(DType::f32, 100003), {100003}), k),
                   true);
    Array rising(DType::i64, 80000);  // every element is among the first so far
    for (int64_t i = 0; i < 80000; ++i) rising.set(i, double(i));
    expect_ordered("topk", order_operands(dense(rising, {80000}), k), true);
    expect_ordered("topk", order_operands(dense(rising, {2, 40000}), std::min<int64_t>(k, 40000)),
                   true);
  }
}

TEST(Sort, EitherOutputMayBeLeftOut) {
  for (const char* kernel : {"sort", "topk"}) {
    auto o = order_operands(dense(mixed_array(DType::f32, 60), {3, 20}), 20);
    auto whole = o;
    call(kernel, whole, 2, {1, 0});
    const auto executable = test_backend().compile(make_call(kernel, o, 2, {1, 0}));
    const BufferRef x = {o[0].array.data(), 0}, none = {nullptr, 0};
    test_backend().launch(*executable, std::vector<BufferRef>{x, {o[1].array.data(), 0}, none}, 0,
                          Stream{});
    EXPECT_EQ(o[1].array.bytes(), whole[1].array.bytes());
    test_backend().launch(*executable, std::vector<BufferRef>{x, none, {o[2].array.data(), 0}}, 0,
                          Stream{});
    EXPECT_EQ(o[2].array.bytes(), whole[2].array.bytes());
  }
}

TEST(Sort, Refuses) {
  auto o = order_operands(dense(Array(DType::f32, 6), {2, 3}), 2);
  EXPECT_EQ(error_of([&] { call("sort", o, 2); }),
            "sort: expected values of shape (2, 3), got (2, 2)");
  std::vector<Operand> scalars = {dense(Array(DType::f32, 1), {}), dense(Array(DType::f32, 1), {}),
                                  dense(Array(DType::i64, 1), {})};
  EXPECT_EQ(error_of([&] { call("sort", scalars, 2); }),
            "sort: expected x of at least 1 dimension, got ()");
  EXPECT_EQ(error_of([&] { call("topk", scalars, 2); }),
            "topk: expected values of at most (), got ()");
  auto many = order_operands(dense(Array(DType::f32, 6), {2, 3}), 4);
  EXPECT_EQ(error_of([&] { call("topk", many, 2); }),
            "topk: expected values of at most (2, 3), got (2, 4)");
  auto rows = order_operands(dense(Array(DType::f32, 6), {2, 3}), 2);
  rows[1] = dense(Array(DType::f32, 6), {3, 2});
  rows[2] = dense(Array(DType::i64, 6), {3, 2});
  EXPECT_EQ(error_of([&] { call("topk", rows, 2); }),
            "topk: expected values of as many rows as x has, got (3, 2) for (2, 3)");
}

}  // namespace
}  // namespace tessera::test
