// sort, argsort, topk and unique_counts against std::stable_sort and plain counting.
#include "tessera/tensor/order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "support/expect_error.h"
#include "tessera/conformance/reference.h"
#include "tessera/tensor/autograd.h"
#include "tessera/tensor/ops.h"
#include "tessera/tensor/var.h"

namespace tessera {
namespace {

using Doubles = std::vector<double>;
using Places = std::vector<int64_t>;

const double kNan = std::nan("");
const double kInf = std::numeric_limits<double>::infinity();

bool less(double a, double b) { return a < b || (std::isnan(b) && !std::isnan(a)); }

// Where the elements of a row are, in order.
Places order(const Doubles& row, bool descending) {
  Places places(row.size());
  std::iota(places.begin(), places.end(), 0);
  std::stable_sort(places.begin(), places.end(), [&](int64_t i, int64_t j) {
    const double a = row[size_t(i)], b = row[size_t(j)];
    return descending ? less(b, a) : less(a, b);
  });
  return places;
}

// The element at each place of each row of x, an (R, C).
void expect_rows(const Tensor& x, const Ordered& ordered, bool descending) {
  const Doubles data = to_doubles(x), values = to_doubles(ordered.values);
  const Places indices = ordered.indices.to_vector<int64_t>();
  const size_t n = size_t(x.shape().back()), k = size_t(ordered.values.shape().back());
  for (size_t row = 0; row * n < data.size(); ++row) {
    const Doubles part(data.begin() + long(row * n), data.begin() + long((row + 1) * n));
    const Places places = order(part, descending);
    for (size_t i = 0; i < k; ++i) {
      ASSERT_EQ(indices[row * k + i], places[i]) << name(x.dtype()) << " row " << row << ", " << i;
      const double expected = part[size_t(places[i])], got = values[row * k + i];
      ASSERT_TRUE(got == expected || (std::isnan(got) && std::isnan(expected)));
    }
  }
}

TEST(Sort, EveryType) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const Tensor x = cast(random_tensor({5, 33}, 1, DType::f32, 0, 12), DType(i));
    for (const bool descending : {false, true}) {
      const Ordered ordered = sort(x, -1, descending);
      EXPECT_EQ(ordered.values.dtype(), x.dtype());
      EXPECT_EQ(ordered.indices.dtype(), DType::i64);
      expect_rows(x, ordered, descending);
      expect_rows(x, topk(x, 7, -1, descending), descending);
    }
  }
}

TEST(Sort, SpecialNumbers) {
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
    const Tensor x =
        cast(tensor(Doubles{3, kNan, -kInf, 0.0, -0.0, kInf, -kNan, -3, 0.0, 3}), dtype);
    EXPECT_EQ(argsort(x).to_vector<int64_t>(), (Places{2, 7, 3, 4, 8, 0, 9, 5, 1, 6}));
    EXPECT_EQ(argsort(x, 0, true).to_vector<int64_t>(), (Places{1, 6, 5, 0, 9, 3, 4, 8, 7, 2}));
    EXPECT_EQ(topk(x, 3).indices.to_vector<int64_t>(), (Places{1, 6, 5}));
    EXPECT_EQ(topk(x, 3, 0, false).indices.to_vector<int64_t>(), (Places{2, 7, 3}));
    // The zeros keep their signs.
    const Doubles values = to_doubles(sort(x).values);
    EXPECT_FALSE(std::signbit(values[2]));
    EXPECT_TRUE(std::signbit(values[3]));
  }
}

TEST(Sort, EndsOfTheIntegers) {
  const Tensor wide = tensor(Places{0, INT64_MAX, INT64_MIN, -1, INT64_MAX - 1, 1});
  EXPECT_EQ(sort(wide).values.to_vector<int64_t>(),
            (Places{INT64_MIN, -1, 0, 1, INT64_MAX - 1, INT64_MAX}));
  const Tensor words = tensor(std::vector<uint32_t>{1, 4294967295u, 0, 2147483648u});
  EXPECT_EQ(argsort(words).to_vector<int64_t>(), (Places{2, 0, 3, 1}));
  const Tensor bytes = tensor(std::vector<int8_t>{127, -128, 0, -1});
  EXPECT_EQ(argsort(bytes, 0, true).to_vector<int64_t>(), (Places{0, 2, 3, 1}));
  const Tensor flags = tensor(std::vector<bool>{true, false, true, false});
  EXPECT_EQ(sort(flags).values.to_vector<bool>(), (std::vector<bool>{false, false, true, true}));
}

TEST(Sort, AnyAxisAndView) {
  const Tensor x = random_tensor({4, 5, 6}, 1);
  for (int axis = -3; axis < 3; ++axis) {
    const Ordered ordered = sort(x, axis, true);
    EXPECT_EQ(ordered.values.shape(), x.shape());
    const Tensor rows = reshape(transpose(x, axis, -1), {-1, x.size(axis)});
    const Ordered in_rows = {reshape(transpose(ordered.values, axis, -1), rows.shape()),
                             reshape(transpose(ordered.indices, axis, -1), rows.shape())};
    expect_rows(rows, in_rows, true);
    EXPECT_EQ(to_doubles(gather(x, ordered.indices, axis)), to_doubles(ordered.values));
    EXPECT_EQ(argsort(x, axis, true).to_vector<int64_t>(), ordered.indices.to_vector<int64_t>());
    EXPECT_EQ(topk(x, 2, axis).values.size(axis), 2);
    EXPECT_EQ(to_doubles(topk(x, 2, axis).values), to_doubles(slice(ordered.values, axis, 0, 2)));
  }
  const Tensor flipped = reshape(flip(x, {0, 2}), {20, 6}), stepped = slice(flipped, 0, 1, 20, 3);
  expect_rows(flipped, sort(flipped), false);
  expect_rows(stepped, sort(stepped), false);
  expect_rows(x.eval(), {sort(expand(x, {4, 5, 6})).values, argsort(x)}, false);
}

TEST(Sort, OneAndNoElements) {
  EXPECT_EQ(to_doubles(sort(tensor(Doubles{5})).values), (Doubles{5}));
  EXPECT_EQ(sort(zeros({3, 1})).indices.to_vector<int64_t>(), (Places{0, 0, 0}));
  for (const Shape& shape : {Shape{0}, Shape{3, 0}, Shape{0, 3}}) {
    EXPECT_EQ(sort(zeros(shape)).values.eval().shape(), shape);
    EXPECT_EQ(argsort(zeros(shape), 0).eval().shape(), shape);
  }
  EXPECT_EQ(topk(zeros({3, 4}), 0).values.eval().shape(), (Shape{3, 0}));
  EXPECT_EQ(topk(zeros({4, 3}), 0, 0).indices.eval().shape(), (Shape{0, 3}));
}

TEST(Sort, AMillionElements) {
  constexpr int64_t kCount = 1000003;
  const Tensor x = random_tensor({1, kCount}, 7, DType::f32, -100, 100);
  const Tensor coarse = floor(x);  // many equal ones
  expect_rows(x, sort(x), false);
  expect_rows(coarse, sort(coarse, -1, true), true);
  expect_rows(coarse, topk(coarse, 100), true);
  expect_rows(coarse, topk(coarse, kCount / 3, -1, false), false);
  expect_rows(cast(x, DType::f64), sort(cast(x, DType::f64)), false);
}

TEST(Sort, Refuses) {
  const Tensor x = zeros({2, 3});
  EXPECT_EQ(error_text([&] { sort(x, 2); }), "sort: axis 2 is out of range for 2 dimensions");
  EXPECT_EQ(error_text([&] { argsort(x, -3); }),
            "argsort: axis -3 is out of range for 2 dimensions");
  EXPECT_EQ(error_text([&] { topk(x, 4); }),
            "topk: expected k from 0 to 3 for axis 1 of (2, 3), got 4");
  EXPECT_EQ(error_text([&] { topk(x, 3, 0); }),
            "topk: expected k from 0 to 2 for axis 0 of (2, 3), got 3");
  EXPECT_EQ(error_text([&] { topk(x, -1); }),
            "topk: expected k from 0 to 3 for axis 1 of (2, 3), got -1");
}

TEST(Sort, GradientsGoBackToWhereTheValuesWere) {
  const Tensor x = tensor(Doubles{3, 1, 2, 9, 7, 8}, {2, 3});
  const Tensor w = tensor(Doubles{1, 10, 100, 2, 20, 200}, {2, 3});
  const auto sorted = [&](const Tensor& v) { return sum(square(sort(v).values) * w); };
  EXPECT_EQ(to_doubles(grad(sorted(x), x)), (Doubles{600, 2, 40, 3600, 28, 320}));
  const auto first = [&](const Tensor& v) { return sum(square(topk(v, 1, 0).values)); };
  EXPECT_EQ(to_doubles(grad(first(x), x)), (Doubles{0, 0, 0, 18, 14, 16}));
  // Second order: the gradient 2 w x differentiated once more.
  const Tensor once = grad(sorted(x), x);
  EXPECT_EQ(to_doubles(grad(sum(once), x)), (Doubles{200, 2, 20, 400, 4, 40}));
}

TEST(UniqueCounts, EveryType) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const Tensor x = cast(tensor(Doubles{3, 1, 3, 0, 1, 3}, {2, 3}), DType(i));
    const UniqueCounts unique = unique_counts(x);
    EXPECT_EQ(unique.values.dtype(), x.dtype());
    EXPECT_EQ(unique.inverse.shape(), x.shape());
    if (DType(i) == DType::boolean) {
      EXPECT_EQ(unique.counts.to_vector<int64_t>(), (Places{1, 5}));
      continue;
    }
    EXPECT_EQ(to_doubles(unique.values), (Doubles{0, 1, 3}));
    EXPECT_EQ(unique.counts.to_vector<int64_t>(), (Places{1, 2, 3}));
    EXPECT_EQ(unique.inverse.to_vector<int64_t>(), (Places{2, 1, 2, 0, 1, 2}));
  }
}

TEST(UniqueCounts, NansAreOneValueAndSoAreZeros) {
  const UniqueCounts unique = unique_counts(tensor(Doubles{kNan, 0.0, kInf, -0.0, -kNan, -1}));
  const Doubles values = to_doubles(unique.values);
  EXPECT_EQ(Doubles(values.begin(), values.begin() + 3), (Doubles{-1, 0, kInf}));
  EXPECT_TRUE(std::isnan(values[3]));
  EXPECT_EQ(unique.counts.to_vector<int64_t>(), (Places{1, 2, 1, 2}));
  EXPECT_EQ(unique.inverse.to_vector<int64_t>(), (Places{3, 1, 2, 1, 3, 0}));
}

TEST(UniqueCounts, OfNothingAndOfAScalar) {
  const UniqueCounts none = unique_counts(zeros({3, 0}));
  EXPECT_EQ(none.values.shape(), (Shape{0}));
  EXPECT_EQ(none.counts.shape(), (Shape{0}));
  EXPECT_EQ(none.inverse.shape(), (Shape{3, 0}));
  const UniqueCounts one = unique_counts(scalar(4.0f));
  EXPECT_EQ(to_doubles(one.values), (Doubles{4}));
  EXPECT_EQ(one.inverse.shape(), Shape{});
}

// Totals and windows, as far as they are this layer's
// -----------------------------------------------

TEST(RunningTotals, SmallIntegersAreTotalledAsI64) {
  const Tensor bytes = tensor(std::vector<uint8_t>{200, 100, 2});
  EXPECT_EQ(cumsum(bytes).to_vector<int64_t>(), (Places{200, 300, 302}));
  EXPECT_EQ(cumprod(bytes).to_vector<int64_t>(), (Places{200, 20000, 40000}));
  EXPECT_EQ(cumsum(tensor(std::vector<bool>{true, false, true})).to_vector<int64_t>(),
            (Places{1, 1, 2}));
  EXPECT_EQ(prod(zeros({2, 0}), {1}).to_vector<float>(), (std::vector<float>{1, 1}));
}

// A convolution as a product with windows that overlap; large enough for every product routine.
TEST(Windows, AProductReadsThemInPlace) {
  const int64_t length = 2000, size = 64, channels = 32;
  const Tensor signal = random_tensor({length}, 1), kernel = random_tensor({size, channels}, 2);
  for (const Tensor& x : {signal, signal * 2.0f}) {
    const Tensor y = matmul(sliding_window(x, 0, size), kernel);
    const std::vector<float> a = x.to_vector<float>(), b = kernel.to_vector<float>();
    const std::vector<float> actual = y.to_vector<float>();
    ASSERT_EQ(y.shape(), (Shape{length - size + 1, channels}));
    for (int64_t i = 0; i < y.size(0); i += 97) {
      for (int64_t j = 0; j < channels; ++j) {
        double expected = 0;
        for (int64_t k = 0; k < size; ++k) {
          expected += double(a[size_t(i + k)]) * double(b[size_t(k * channels + j)]);
        }
        ASSERT_NEAR(actual[size_t(i * channels + j)], expected, 1e-4);
      }
    }
  }
}

// What is written must not be what another window still reads.
TEST(Windows, AreNeverOverwritten) {
  Var v(tensor(std::vector<float>{1, 2, 3, 4, 5, 6}));
  const Tensor pooled = max(sliding_window(v, 0, 2), {1});
  v.assign(concat({pooled, tensor(std::vector<float>{0})}, 0) + v);
  EXPECT_EQ(to_doubles(Tensor(v)), (Doubles{3, 5, 7, 9, 11, 6}));
  const Tensor once = exp(Tensor(v)) * 0.0f + Tensor(v);
  const Tensor twice = sliding_window(once, 0, 3) + sliding_window(once, 0, 3) * 1.0f;
  EXPECT_EQ(to_doubles(twice)[11], 12);
  EXPECT_EQ(to_doubles(reshape(sliding_window(once, 0, 3, 3), {-1})), (Doubles{3, 5, 7, 9, 11, 6}));
}

}  // namespace
}  // namespace tessera
