// Rendered reductions, run on the host with a group of threads per row.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "codegen/host_kernel.h"
#include "codegen/rendered_rows.h"
#include "codegen/zoo.h"
#include "kernel/ir_builder.h"

namespace tessera {
namespace {

class RenderedRows : public WithHostCompiler<testing::TestWithParam<RenderOptions>> {};
class RenderedOnce : public WithHostCompiler<testing::Test> {};  // options of its own

INSTANTIATE_TEST_SUITE_P(Promises, RenderedRows, testing::ValuesIn(promised_options()),
                         promise_name);

TEST_F(RenderedOnce, SoftmaxReducesTwice) {
  for (const int64_t cols : {1, 3, 17, 100}) {
    for (const int group_size : {1, 8}) {
      const HostKernel kernel(softmax_kernel(DType::f32, 1, cols), group_size);
      const std::vector<float> x = waves(5 * cols);
      std::vector<float> y(x.size()), m(5);
      EXPECT_EQ(kernel(5, x, y, m), 0);
      expect_softmax(x, y, m, size_t(cols));
    }
  }
}

// Everything a launcher may promise; 64 lanes are two warps.
constexpr RenderOptions kFast = {.max_group_size = 64, .alignment = 16, .narrow_index = true};

TEST_F(RenderedOnce, SoftmaxOfShortAndLongRows) {
  for (const int64_t cols : {1, 4, 6, 64, 100, 1028, 4096}) {
    const HostKernel kernel(softmax_kernel(DType::f32, 1, cols), kFast);
    const std::vector<float> x = waves(7 * cols);
    std::vector<float> y(x.size()), m(7);
    EXPECT_EQ(kernel(7, x, y, m), 0);
    expect_softmax(x, y, m, size_t(cols));
  }
}

// Too long for the registers of few lanes: held by many, or in local memory, or read again; rows of
// odd lengths start anywhere.
TEST_F(RenderedOnce, SoftmaxOfRowsThatFewLanesCannotHold) {
  for (const int64_t local_bytes : {0, 1 << 16}) {
    for (const int64_t cols : {384, 1024, 1001, 1002, 1003}) {
      const RenderOptions options = {.max_group_size = 8,
                                     .max_row_group = 16,
                                     .local_bytes = local_bytes,
                                     .alignment = 16,
                                     .narrow_index = true};
      const KernelIR ir = softmax_kernel(DType::f32, 1, cols);
      const HostKernel kernel(ir, options);
      // Where rows start anywhere, CUDA's compiler is told that 16 bytes leave at once.
      EXPECT_EQ(kernel.rendered().source.find("t_put((f32x4*)(out1 + ") != std::string::npos,
                cols % 2 != 0);
      EXPECT_EQ(render(ir, opencl_dialect(), options).source.find("t_put"), std::string::npos);
      const std::vector<float> x = waves(9 * cols);
      std::vector<float> y = x, m(9);
      EXPECT_EQ(kernel(9, y, y, m), 0);
      expect_softmax(x, y, m, size_t(cols));
    }
  }
}

TEST_F(RenderedOnce, HalvesInLocalMemoryStayAsTheyWere) {
  const int64_t cols = 1003;
  const RenderOptions options = {.max_group_size = 8, .local_bytes = 1 << 16, .alignment = 16};
  const HostKernel kernel(softmax_kernel(DType::bf16, 1, cols), options);
  std::vector<bf16> x, y(size_t(5 * cols));
  std::vector<float> m(5);
  for (const float v : waves(5 * cols)) x.push_back(bf16(v));
  EXPECT_EQ(kernel(5, x, y, m), 0);
  for (size_t row = 0; row < 5; ++row) {
    double top = -HUGE_VAL, total = 0;
    const bf16* const at = &x[row * size_t(cols)];
    for (int64_t i = 0; i < cols; ++i) top = std::max(top, double(float(at[i])));
    for (int64_t i = 0; i < cols; ++i) total += std::exp(double(float(at[i])) - top);
    EXPECT_EQ(double(m[row]), top);
    for (int64_t i = 0; i < cols; ++i) {
      const double expected = std::exp(double(float(at[i])) - top) / total;
      EXPECT_NEAR(float(y[row * size_t(cols) + size_t(i)]), expected, expected / 256);
    }
  }
}

// y = x / Σ|x| · w over rows that start anywhere, of which w does not: each group asks for its next
// row, and neighbours read neighbouring weights.
TEST_F(RenderedOnce, LongRowsBesideOthersThatStartElsewhere) {
  constexpr int64_t kRows = 7, kCols = 811;
  IrBuilder b("scaled", {kRows, kCols}, 1);
  const int x = b.in(DType::bf16), w = b.in(DType::f32), y = b.out(DType::f32);
  const int v = b.load(x, {kCols, 1});
  const int total = b.reduce(ReduceOp::sum, b.scalar(ScalarOp::abs, {v}));
  const int share = b.scalar(ScalarOp::div, {v, total});
  b.store(y, {kCols, 1}, b.scalar(ScalarOp::mul, {share, b.load(w, {0, 1})}));
  const RenderOptions options = {.max_group_size = 16, .local_bytes = 1 << 16, .alignment = 16};
  const HostKernel kernel(b.build(), options);
  EXPECT_TRUE(kernel.rendered().reads_ahead);
  EXPECT_NE(kernel.rendered().source.find("t_prefetch(in0 + (row + stride) * 811"),
            std::string::npos);
  EXPECT_NE(kernel.rendered().source.find("spaced_"), std::string::npos);
  std::vector<bf16> in;
  std::vector<float> weights, out(size_t(kRows * kCols) + 1, -7);
  for (int64_t i = 0; i < kRows * kCols; ++i) in.push_back(bf16(float(i * 37 % 101) - 50));
  for (int64_t i = 0; i < kCols; ++i) weights.push_back(float(i % 13) + 1);
  EXPECT_EQ(kernel(kRows, in, weights, out), 0);
  for (int64_t row = 0; row < kRows; ++row) {
    double sum = 0;
    for (int64_t col = 0; col < kCols; ++col)
      sum += std::fabs(float(in[size_t(row * kCols + col)]));
    for (int64_t col = 0; col < kCols; ++col) {
      const auto i = size_t(row * kCols + col);
      const double expected = double(float(in[i])) / sum * double(weights[size_t(col)]);
      EXPECT_NEAR(out[i], expected, 1e-6 * std::fabs(expected)) << row << " " << col;
    }
  }
  EXPECT_EQ(out.back(), -7) << "written past the end";
}

TEST_F(RenderedOnce, SplitRowsAreFoldedTwice) {
  RenderOptions options = kFast;
  options.split = true;
  const HostKernel whole(norm_kernel(DType::f64), options);
  const HostKernel columns(golden_kernels()[5], options);  // Σ over 300 of (300, 7)
  for (const int64_t n : {0, 1, 5, 1001}) {
    std::vector<double> x, y = {-1};
    double expected = 0;
    for (int64_t i = 0; i < n; ++i) x.push_back(double(i % 19));
    for (const double v : x) expected += v * v;
    for (const int64_t splits : {1, 3, 9}) {
      EXPECT_EQ(whole.run_split({x.data(), y.data()}, n, splits), 0);
      EXPECT_EQ(y[0], std::sqrt(expected));
    }
  }
  std::vector<f16> x;
  for (int i = 0; i < 300 * 7; ++i) x.push_back(f16(float(i % 13) * 0.25f));
  std::vector<double> y(7);
  EXPECT_EQ(columns.run_split({x.data(), y.data()}, 7, 5), 0);
  for (size_t j = 0; j < 7; ++j) {
    double expected = 0;
    for (size_t i = 0; i < 300; ++i) expected += double(x[i * 7 + j]);
    EXPECT_EQ(y[j], expected);
  }
}

TEST_F(RenderedOnce, SplitArgmaxTakesTheFirst) {
  IrBuilder b("argmax", {1}, 0);
  const int v = b.load(b.in(DType::f32), {1});
  b.store(b.out(DType::i64), {0}, b.reduce(ReduceOp::argmax, v));
  RenderOptions options = kFast;
  options.split = true;
  const HostKernel kernel(b.build(), options);
  std::vector<float> x(3000, 1);
  std::vector<int64_t> at = {-1};
  x[1234] = x[1235] = x[2900] = 5;
  EXPECT_EQ(kernel.run_split({x.data(), at.data()}, 3000, 4), 0);
  EXPECT_EQ(at[0], 1234);
}

TEST_F(RenderedOnce, AnOutputMayReplaceItsInput) {
  for (const RenderOptions& options : {RenderOptions{.max_group_size = 8}, kFast}) {
    const HostKernel kernel(softmax_kernel(DType::f32, 1, 48), options);
    const std::vector<float> x = waves(5 * 48);
    std::vector<float> y = x, m(5);
    EXPECT_EQ(kernel(5, y, y, m), 0);
    expect_softmax(x, y, m, 48);
  }
}

TEST_P(RenderedRows, SumsColumnsOfHalves) {
  const HostKernel kernel(golden_kernels()[5], GetParam());
  std::vector<f16> x;
  for (int i = 0; i < 300 * 7; ++i) x.push_back(f16(float(i % 13) * 0.25f));
  std::vector<double> y(7);
  EXPECT_EQ(kernel(7, x, y), 0);
  for (size_t j = 0; j < 7; ++j) {
    double expected = 0;
    for (size_t i = 0; i < 300; ++i) expected += double(x[i * 7 + j]);
    EXPECT_EQ(y[j], expected);
  }
}

// The outer dimensions are 0 and 1, the inner ones 2 and 3, all permuted in memory.
TEST_P(RenderedRows, ReducesSeveralPermutedDimensions) {
  IrBuilder b("mul sum add", {2, 3, 4, 5}, 2);
  const int x = b.in(DType::f64), bias = b.in(DType::f64), y = b.out(DType::f64);
  const int z = b.out(DType::f64);
  const int shift = b.load(bias, {0, 1, 0, 0}, 0, IrLevel::row);
  const int v = b.load(x, {3, 1, 30, 6});
  const int weight = b.cast(b.index({0, 0, 1, 10}), DType::f64);
  const int total = b.reduce(ReduceOp::sum, b.scalar(ScalarOp::mul, {v, weight}));
  const int moved = b.scalar(ScalarOp::add, {total, shift});
  b.store(y, {1, 2, 0, 0}, moved);
  b.store_at(IrLevel::elem, z, {60, 20, 5, 1}, moved);
  const HostKernel kernel(b.build(), GetParam());
  std::vector<double> in(120), shifts = {10, 20, 30}, out(6), spread(120);
  for (size_t i = 0; i < in.size(); ++i) in[i] = double(i * i % 17);
  EXPECT_EQ(kernel(2, in, shifts, out, spread), 0);
  for (size_t i = 0; i < 2; ++i) {
    for (size_t j = 0; j < 3; ++j) {
      double expected = shifts[j];
      for (size_t k = 0; k < 4; ++k) {
        for (size_t l = 0; l < 5; ++l) {
          expected += in[i * 3 + j + k * 30 + l * 6] * double(k + 10 * l);
        }
      }
      EXPECT_EQ(out[i + 2 * j], expected);
      for (size_t k = 0; k < 20; ++k) EXPECT_EQ(spread[i * 60 + j * 20 + k], expected);
    }
  }
}

TEST_P(RenderedRows, GathersAndMasksInsideAReduction) {
  IrBuilder b("gather pad sum", {3, 6}, 1);
  const int x = b.in(DType::f32), index = b.in(DType::i64), y = b.out(DType::f32);
  const int zero = b.constant(DType::f32, 0);
  const int i = b.load(index, {1, 0}, 0, IrLevel::row);
  const int v = b.load_masked_indexed(x, {0, 1}, {0, 1}, {3, 5}, zero, i, 6, 4);
  b.store(y, {1, 0}, b.reduce(ReduceOp::sum, v));
  const HostKernel kernel(b.build(), GetParam());
  std::vector<float> in(24), out(3);
  for (size_t k = 0; k < 24; ++k) in[k] = float(k);
  std::vector<int64_t> rows = {3, 0, 2};
  EXPECT_EQ(kernel(3, in, rows, out), 0);
  EXPECT_EQ(out, (std::vector<float>{19 + 20 + 21 + 22, 1 + 2 + 3 + 4, 13 + 14 + 15 + 16}));
  rows[1] = 4;
  EXPECT_EQ(kernel(3, in, rows, out), 1);
  EXPECT_EQ(out[0], 82);
  EXPECT_EQ(out[2], 58);
}

template <class T>
void expect_identities(DType dtype, T lowest, T highest, const RenderOptions& options) {
  IrBuilder b("fold", {1}, 0);
  const int v = b.load(b.in(dtype), {1});
  for (const ReduceOp op : {ReduceOp::sum, ReduceOp::prod, ReduceOp::max, ReduceOp::min}) {
    b.store(b.out(dtype), {0}, b.reduce(op, v));
  }
  const HostKernel kernel(b.build(), options);
  std::vector<T> none(1), sum(1, T(9)), prod(1, T(9)), max(1, T(9)), min(1, T(9));
  EXPECT_EQ(kernel(0, none, sum, prod, max, min), 0);
  EXPECT_EQ(sum[0], T(0));
  EXPECT_EQ(prod[0], T(1));
  EXPECT_EQ(max[0], lowest);
  EXPECT_EQ(min[0], highest);
  const std::vector<T> some = {T(2), T(5), T(3), T(1)};
  EXPECT_EQ(kernel(4, some, sum, prod, max, min), 0);
  EXPECT_EQ(sum[0], T(11));
  EXPECT_EQ(prod[0], T(30));
  EXPECT_EQ(max[0], T(5));
  EXPECT_EQ(min[0], T(1));
}

TEST_P(RenderedRows, FoldOfNothingIsTheIdentity) {
  expect_identities<float>(DType::f32, -HUGE_VALF, HUGE_VALF, GetParam());
  expect_identities<double>(DType::f64, -HUGE_VAL, HUGE_VAL, GetParam());
  expect_identities<int8_t>(DType::i8, INT8_MIN, INT8_MAX, GetParam());
  expect_identities<int32_t>(DType::i32, INT32_MIN, INT32_MAX, GetParam());
  expect_identities<int64_t>(DType::i64, INT64_MIN, INT64_MAX, GetParam());
  expect_identities<uint8_t>(DType::u8, 0, UINT8_MAX, GetParam());
  expect_identities<uint32_t>(DType::u32, 0, UINT32_MAX, GetParam());
}

TEST_P(RenderedRows, EveryTypeReduces) {
  constexpr size_t kCols = 23;
  for (int k = 0; k < kDTypeCount; ++k) {
    const DType dtype = static_cast<DType>(k);
    if (dtype == DType::boolean) continue;
    SCOPED_TRACE(name(dtype));
    visit(dtype, [&]<class T>() {
      using Element = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;
      std::vector<Element> x(5 * kCols, Element(1.0f)), sum(5), prod(5), max(5), min(5);
      std::vector<int64_t> at(5);
      for (size_t row = 0; row < 5; ++row) {
        x[row * kCols + 2 * row + 3] = x[row * kCols + 20] = Element(3.0f);
        x[row * kCols + 1] = Element(0.0f);
      }
      x[1] = Element(2.0f);
      EXPECT_EQ(HostKernel(all_reductions_kernel(dtype, kCols), GetParam())(5, x, sum, prod, max,
                                                                            min, at),
                0);
      for (size_t row = 0; row < 5; ++row) {
        EXPECT_EQ(double(sum[row]), row == 0 ? 28 : 26);
        EXPECT_EQ(double(prod[row]), row == 0 ? 18 : 0);
        EXPECT_EQ(double(max[row]), 3);
        EXPECT_EQ(double(min[row]), row == 0 ? 1 : 0);
        EXPECT_EQ(at[row], int64_t(2 * row + 3));
      }
    });
  }
}

TEST_P(RenderedRows, AnyAndAllOfBools) {
  IrBuilder b("any all", {3, 9}, 1);
  const int x = b.in(DType::boolean), any = b.out(DType::boolean), all = b.out(DType::boolean);
  const int v = b.load(x, {9, 1});
  b.store(any, {1, 0}, b.reduce(ReduceOp::max, v));
  b.store(all, {1, 0}, b.reduce(ReduceOp::min, v));
  std::vector<uint8_t> in(27, 0), some(3, 9), every(3, 9);
  in[9 + 8] = 1;
  std::fill(in.begin() + 18, in.end(), uint8_t{1});
  EXPECT_EQ(HostKernel(b.build(), GetParam())(3, in, some, every), 0);
  EXPECT_EQ(some, (std::vector<uint8_t>{0, 1, 1}));
  EXPECT_EQ(every, (std::vector<uint8_t>{0, 0, 1}));
}

TEST_P(RenderedRows, ArgmaxTakesTheFirstAndNaNFirst) {
  const HostKernel kernel(golden_kernels()[6], GetParam());  // (n | 3, 20)
  const float nan = std::nanf(""), inf = HUGE_VALF;
  std::vector<float> x(6 * 60, -1);
  x[0 * 60 + 41] = x[0 * 60 + 44] = 7;                               // a tie
  x[1 * 60 + 13] = inf, x[1 * 60 + 50] = nan, x[1 * 60 + 58] = nan;  // NaN beats infinity
  std::fill(x.begin() + 120, x.begin() + 180, -inf);                 // equal to the start
  std::fill(x.begin() + 180, x.begin() + 240, nan);
  x[4 * 60 + 59] = 0;
  x[5 * 60 + 0] = 0;
  std::vector<int64_t> at(6);
  EXPECT_EQ(kernel(6, x, at), 0);
  EXPECT_EQ(at, (std::vector<int64_t>{41, 50, 0, 0, 59, 0}));
}

TEST_P(RenderedRows, MaximaKeepNaN) {
  const HostKernel kernel(all_reductions_kernel(DType::f32, 10), GetParam());
  std::vector<float> x(20, 1), sum(2), prod(2), max(2), min(2);
  std::vector<int64_t> at(2);
  x[7] = std::nanf("");
  EXPECT_EQ(kernel(2, x, sum, prod, max, min, at), 0);
  EXPECT_TRUE(std::isnan(max[0]) && std::isnan(min[0]) && std::isnan(sum[0]));
  EXPECT_TRUE(max[1] == 1 && min[1] == 1 && sum[1] == 10);
}

TEST_P(RenderedRows, IntegerSumsWrap) {
  IrBuilder b("sum", {1, 4}, 1);
  const int x = b.in(DType::i64), y = b.out(DType::i64);
  b.store(y, {1, 0}, b.reduce(ReduceOp::sum, b.load(x, {4, 1})));
  const std::vector<int64_t> in = {INT64_MAX, 1, INT64_MAX, 5};
  std::vector<int64_t> out(1);
  EXPECT_EQ(HostKernel(b.build(), GetParam())(1, in, out), 0);
  EXPECT_EQ(out[0], 4);
}

}  // namespace
}  // namespace tessera
