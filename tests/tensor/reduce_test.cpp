// Reductions beyond those of the op table, against plain loops.
#include "tessera/tensor/reduce.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/expect_error.h"
#include "tessera/conformance/reference.h"
#include "tessera/tensor/autograd.h"
#include "tessera/tensor/ops.h"

namespace tessera {
namespace {

using Doubles = std::vector<double>;
constexpr double kInfinite = std::numeric_limits<double>::infinity();

TEST(Reduce, VarianceAndDeviation) {
  const Tensor x = tensor(std::vector<double>{1, 2, 4, 8, 16, 32}, {2, 3});
  const Doubles rows = to_doubles(var(x, {1}));
  EXPECT_NEAR(rows[0], 7.0 / 3, 1e-12);
  EXPECT_NEAR(rows[1], 448.0 / 3, 1e-12);
  EXPECT_NEAR(to_doubles(var(x, {1}, true, 0))[0], 14.0 / 9, 1e-12);
  EXPECT_NEAR(stddev(x).item(), std::sqrt(var(x).item()), 1e-12);
  EXPECT_EQ(var(x, {0}, true).shape(), (Shape{1, 3}));
  // Large means must not cancel the deviations away.
  const Tensor far = tensor(std::vector<float>{1e6f + 1, 1e6f + 2, 1e6f + 3});
  EXPECT_EQ(var(far).item(), 1);
  EXPECT_EQ(var(full({100000}, 2, DType::f16)).item(), 0);
  EXPECT_EQ(var(arange(3)).dtype(), DType::f32);
  EXPECT_EQ(error_text([] {
              var(ones({1, 3}), {0});
            }),
            "var: expected more than 1 elements, got 1 in (1, 3)");
}

TEST(Reduce, Norms) {
  const Tensor x = tensor(std::vector<double>{3, -4, 0, 0}, {2, 2});
  EXPECT_EQ(norm(x).item(), 5);
  EXPECT_EQ(to_doubles(norm(x, 1, {1})), (Doubles{7, 0}));
  EXPECT_EQ(norm(x, kInfinite).item(), 4);
  EXPECT_EQ(norm(x, 0).item(), 2);
  EXPECT_NEAR(norm(x, 3).item(), std::cbrt(27 + 64.0), 1e-12);
  EXPECT_EQ(norm(x, 2, {0}, true).shape(), (Shape{1, 2}));
  // At 0 the gradient is 0, not NaN.
  for (const double p : {1.0, 2.0, 3.0}) {
    const Doubles slope = to_doubles(grad(sum(norm(x, p, {1})), x));
    EXPECT_EQ(slope[2], 0) << p;
    EXPECT_EQ(slope[3], 0) << p;
  }
  EXPECT_NEAR(to_doubles(grad(norm(x), x))[0], 0.6, 1e-12);
  EXPECT_EQ(error_text([&] { norm(x, -1); }), "norm: expected p of at least 0, got -1");
}

TEST(Reduce, RootsOfNothingPassNoGradient) {
  const Tensor same = tensor(std::vector<double>{1, 1, 1});
  EXPECT_EQ(to_doubles(grad(stddev(same), same)), (Doubles{0, 0, 0}));
  const Tensor x = tensor(std::vector<double>{0, 1, 4});
  const Doubles slope = to_doubles(grad(norm(x, 0.5), x));  // (Σ √x)² has the slope 3 / √x
  EXPECT_EQ(slope[0], 0);
  EXPECT_NEAR(slope[1], 3, 1e-12);
  EXPECT_NEAR(slope[2], 1.5, 1e-12);
}

TEST(Reduce, AnyAndAll) {
  const Tensor x = tensor(std::vector<int32_t>{0, 2, 0, 0, 1, 1}, {3, 2});
  EXPECT_EQ(to_doubles(any(x, {1})), (Doubles{1, 0, 1}));
  EXPECT_EQ(to_doubles(all(x, {1})), (Doubles{0, 0, 1}));
  EXPECT_EQ(any(x).dtype(), DType::boolean);
  EXPECT_EQ(any(tensor(std::vector<float>{0, NAN})).item(), 1);
  EXPECT_EQ(any(tensor(std::vector<float>{0, -0.f})).item(), 0);
  EXPECT_EQ(any(zeros({0})).item(), 0);  // of nothing: none is, all are
  EXPECT_EQ(all(zeros({0})).item(), 1);
  EXPECT_EQ(to_doubles(all(zeros({2, 0}, DType::boolean), {1})), (Doubles{1, 1}));
}

TEST(Reduce, ArgminAtTheEndsOfIntegers) {
  const int64_t least = std::numeric_limits<int64_t>::min();
  EXPECT_EQ(argmin(tensor(std::vector<int64_t>{5, least, 3})).item(), 1);
  EXPECT_EQ(argmin(tensor(std::vector<uint32_t>{7, 0, 4294967295u})).item(), 1);
  EXPECT_EQ(argmin(tensor(std::vector<int8_t>{127, -128, -128})).item(), 1);
  EXPECT_EQ(argmin(tensor(std::vector<bool>{true, false, false})).item(), 1);
  EXPECT_EQ(argmin(tensor(std::vector<float>{3, NAN, -INFINITY})).item(), 1);
  EXPECT_EQ(argmin(tensor(std::vector<float>{3, -2, -2})).item(), 1);
  EXPECT_EQ(argmin(ones({2, 3}), 0, true).shape(), (Shape{1, 3}));
}

TEST(Reduce, Products) {
  const Tensor x = tensor(std::vector<double>{2, 3, 0, 5, 0, 0}, {2, 3});
  EXPECT_EQ(to_doubles(prod(x, {1})), (Doubles{0, 0}));
  EXPECT_EQ(to_doubles(prod(x, {0})), (Doubles{10, 0, 0}));
  EXPECT_EQ(prod(zeros({0})).item(), 1);
  EXPECT_EQ(prod(tensor(std::vector<int8_t>{100, 100})).item(), 10000);
  // One zero in a row: only its own slope is left; two: none.
  EXPECT_EQ(to_doubles(grad(sum(prod(x, {1})), x)), (Doubles{0, 0, 6, 0, 0, 0}));
  const Tensor g = grad(sum(prod(x, {1})), x);
  EXPECT_EQ(to_doubles(grad(sum(g), x)), (Doubles{3, 2, 5, 0, 5, 5}));
}

TEST(Reduce, RunningTotals) {
  const Tensor x = tensor(std::vector<double>{1, 2, 3, 4, 5, 6}, {2, 3});
  EXPECT_EQ(to_doubles(cumsum(x)), (Doubles{1, 3, 6, 4, 9, 15}));
  EXPECT_EQ(to_doubles(cumsum(x, 0)), (Doubles{1, 2, 3, 5, 7, 9}));
  EXPECT_EQ(to_doubles(cumprod(x)), (Doubles{1, 2, 6, 4, 20, 120}));
  EXPECT_EQ(cumsum(ones({300}, DType::u8)).dtype(), DType::i64);
  EXPECT_EQ(max(cumsum(ones({300}, DType::u8))).item(), 300);
  EXPECT_EQ(cumsum(zeros({0, 2}), 0).shape(), (Shape{0, 2}));
  const Tensor zero = tensor(std::vector<double>{2, 0, 3});
  EXPECT_EQ(to_doubles(grad(sum(cumprod(zero)), zero)), (Doubles{1, 8, 0}));
}

TEST(Reduce, LogsumexpOverSeveralAxes) {
  const Tensor x = tensor(std::vector<double>{0, std::log(2), std::log(3), std::log(4)}, {2, 2});
  EXPECT_NEAR(logsumexp(x).item(), std::log(10), 1e-12);
  EXPECT_EQ(logsumexp(x, {0, 1}, true).shape(), (Shape{1, 1}));
  EXPECT_NEAR(to_doubles(logsumexp(x, {0}))[1], std::log(6), 1e-12);
}

}  // namespace
}  // namespace tessera
