// sort, topk and totals on the stand-in: against std::stable_sort, plain loops and the CPU.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "cuda_stand_in/stand_in_test.h"
#include "support/expect_error.h"
#include "tessera/backend/cuda/kernels/order_rows.h"
#include "tessera/backend/cuda/kernels/scan.h"
#include "tessera/tessera.h"

namespace tessera::test {
namespace {

class CudaOrderTest : public OnStandIn<> {};

// Few different numbers, so that equals abound; zeros of both signs, infinities, NaNs.
std::vector<float> mixed(int64_t n) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<float> values;
  for (int64_t i = 0; i < n; ++i) {
    const int64_t turn = i * i * 31 % 97;
    values.push_back(turn == 5    ? NAN
                     : turn == 6  ? -0.f
                     : turn == 7  ? kInfinity
                     : turn == 12 ? -kInfinity
                                  : float(turn % 23) / 4 - 2);
  }
  return values;
}

bool comes_before(float a, float b, bool falling) {
  const auto is_less = [](float p, float q) { return p < q || (p == p && q != q); };
  return falling ? is_less(b, a) : is_less(a, b);
}

// The first `kept` columns of each row in order.
std::vector<int64_t> ordered(const std::vector<float>& x, int64_t columns, int64_t kept,
                             bool falling) {
  std::vector<int64_t> result, row(static_cast<size_t>(columns));
  for (size_t begin = 0; begin < x.size(); begin += size_t(columns)) {
    std::iota(row.begin(), row.end(), 0);
    std::stable_sort(row.begin(), row.end(), [&](int64_t a, int64_t b) {
      return comes_before(x[begin + size_t(a)], x[begin + size_t(b)], falling);
    });
    result.insert(result.end(), row.begin(), row.begin() + kept);
  }
  return result;
}

TEST_F(CudaOrderTest, FewOfLongRows) {
  constexpr int64_t kRows = 2;
  for (const auto& [columns, kept, falling] :
       {std::tuple(1024, 3, true), std::tuple(3000, 64, true), std::tuple(2500, 1, false),
        std::tuple(20000, 700, true), std::tuple(1500, 90, false)}) {
    SCOPED_TRACE(cat(columns, " ", kept, " ", falling));
    ASSERT_TRUE(cuda::plan_order(columns, kept, DType::f32, 232448).selects);
    const std::vector<float> values = mixed(kRows * columns);
    const std::vector<int64_t> expected = ordered(values, columns, kept, falling);
    for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
      const auto [first, at] =
          topk(cast(tensor(values, {kRows, columns}), dtype), kept, -1, falling);
      EXPECT_EQ(at.to_vector<int64_t>(), expected);
      const std::vector<float> got = cast(first, DType::f32).to_vector<float>();
      for (size_t i = 0; i < got.size(); ++i) {
        const float wanted = values[i / size_t(kept) * size_t(columns) + size_t(expected[i])];
        EXPECT_TRUE(got[i] == wanted || (std::isnan(got[i]) && std::isnan(wanted))) << i;
        EXPECT_EQ(std::signbit(got[i]), std::signbit(wanted)) << i;
      }
    }
  }
}

TEST_F(CudaOrderTest, WholeRows) {
  for (const auto& [rows, columns] :
       {std::pair(3, 1), std::pair(5, 2), std::pair(4, 64), std::pair(3, 65), std::pair(2, 3000)}) {
    for (const bool falling : {false, true}) {
      SCOPED_TRACE(cat(rows, " ", columns, " ", falling));
      const std::vector<float> values = mixed(rows * columns);
      const std::vector<int64_t> expected = ordered(values, columns, columns, falling);
      const Tensor x = tensor(values, {rows, columns});
      EXPECT_EQ(sort(x, -1, falling).indices.to_vector<int64_t>(), expected);
      // Rows that lie apart, and results by column.
      const Tensor turned = transpose(x);
      turned.eval();
      EXPECT_EQ(transpose(sort(turned, 0, falling).indices).to_vector<int64_t>(), expected);
    }
  }
}

TEST_F(CudaOrderTest, IntegersOfEveryWidth) {
  constexpr int64_t kColumns = 1300;
  std::vector<float> values;
  for (int64_t i = 0; i < 2 * kColumns; ++i) values.push_back(float(i * i * 17 % 120));
  for (const DType dtype : {DType::i8, DType::u8, DType::i32, DType::u32, DType::i64, DType::f64}) {
    const bool is_signed = dtype != DType::u8 && dtype != DType::u32;
    std::vector<float> numbers = values;
    for (float& x : numbers) x -= is_signed ? 60 : 0;
    const Tensor x = cast(tensor(numbers, {2, kColumns}), dtype);
    SCOPED_TRACE(name(dtype));
    EXPECT_EQ(sort(x).indices.to_vector<int64_t>(), ordered(numbers, kColumns, kColumns, false));
    EXPECT_EQ(topk(x, 40).indices.to_vector<int64_t>(), ordered(numbers, kColumns, 40, true));
  }
}

// Lines that lie together and apart, whole and in segments, against sums in f64.
TEST_F(CudaOrderTest, TotalsAlongAnAxis) {
  for (const auto& [shape, axis, dtype] :
       {std::tuple(Shape{3, 70}, 1, DType::f32), std::tuple(Shape{2, 30000}, 1, DType::f32),
        std::tuple(Shape{1, 9001}, 1, DType::bf16), std::tuple(Shape{5, 24}, 1, DType::f32),
        std::tuple(Shape{3000, 3}, 0, DType::f32), std::tuple(Shape{2, 130, 5}, 1, DType::f64),
        std::tuple(Shape{20000}, 0, DType::f64), std::tuple(Shape{40, 515}, 1, DType::f16)}) {
    SCOPED_TRACE(cat(shape, " ", axis, " ", name(dtype)));
    std::vector<float> values(size_t(numel(shape)));
    for (size_t i = 0; i < values.size(); ++i) values[i] = float(i * i % 13) / 16 - 0.375f;
    const Tensor x = cast(tensor(values, shape), dtype);
    const std::vector<double> got = cast(cumsum(x, axis), DType::f64).to_vector<double>();
    const int64_t step = row_major_strides(shape)[axis];
    std::vector<double> total(values.begin(), values.end());
    for (size_t i = 0; i < total.size(); ++i) {
      if (int64_t(i) / step % shape[axis] > 0) total[i] += total[i - size_t(step)];
      const double unit = dtype == DType::bf16 ? 0.004 : dtype == DType::f16 ? 0.0005 : 1e-6;
      ASSERT_NEAR(got[i], total[i], unit * (1 + std::abs(total[i]))) << i;
    }
  }
}

TEST_F(CudaOrderTest, ProductsAndWrappingTotals) {
  const Tensor x = tensor<int32_t>({1 << 30, 1 << 30, 1 << 30, 1 << 30, 7}, {5});
  EXPECT_EQ(cumsum(x, 0).to_vector<int32_t>(),
            (std::vector<int32_t>{1 << 30, -2147483647 - 1, -(1 << 30), 0, 7}));
  std::vector<float> ones(1000, 1);
  ones[100] = 2;
  ones[300] = -3;
  const std::vector<float> products = cumprod(tensor(ones, {1000}), 0).to_vector<float>();
  for (size_t i = 0; i < 1000; ++i) EXPECT_EQ(products[i], i < 100 ? 1 : i < 300 ? 2 : -6) << i;
  EXPECT_TRUE(std::signbit(cumsum(tensor<float>({-0.f}, {1}), 0).to_vector<float>()[0]));
}

TEST(CudaScans, AreCutIntoSegments) {
  const auto plan = [](const Shape& shape, int axis, DType dtype) {
    const OperandView x = {dtype, contiguous_view(shape)};
    const cuda::ScanPlan p = cuda::plan_scan(x, x, axis, 132);
    return std::tuple(p.by_group, p.vector, p.segments, p.span);
  };
  EXPECT_EQ(plan({4096, 4096}, 1, DType::f32), std::tuple(true, 4, 1, 4096));
  EXPECT_EQ(plan({1 << 20}, 0, DType::f32), std::tuple(true, 4, 512, 2048));
  EXPECT_EQ(plan({64, 50257}, 1, DType::bf16), std::tuple(true, 1, 9, 5632));
  EXPECT_EQ(plan({1 << 20, 8}, 0, DType::f32), std::tuple(false, 1, 1024, 1024));
  EXPECT_EQ(plan({1 << 20, 8}, 1, DType::f32), std::tuple(false, 1, 1, 64));
  KernelCall call;
  call.kernel = "cumsum";
  EXPECT_EQ(error_text([&] { backend(kCuda).compile(call); }),
            "cumsum: expected 2 operands, got 0");
}

TEST(CudaOrders, AreChosenByLength) {
  const auto plan = [](int64_t columns, int64_t kept, DType dtype = DType::f32) {
    const cuda::OrderPlan p = cuda::plan_order(columns, kept, dtype, 232448);
    return std::tuple(p.selects, p.lanes, p.length);
  };
  EXPECT_EQ(plan(50257, 64), std::tuple(true, 1024, 0));
  EXPECT_EQ(plan(50257, 1025), std::tuple(false, 0, 0));
  EXPECT_EQ(plan(50257, 64, DType::f64), std::tuple(false, 0, 0));
  EXPECT_EQ(plan(8192, 8192), std::tuple(false, 1024, 8192));
  EXPECT_EQ(plan(16000, 16000), std::tuple(false, 1024, 16384));
  EXPECT_EQ(plan(20, 20), std::tuple(false, 32, 64));
  EXPECT_EQ(plan(1000, 10), std::tuple(false, 512, 1024));
}

}  // namespace
}  // namespace tessera::test
