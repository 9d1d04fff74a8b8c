// softmax and layer_norm of long rows by kernels of their own, against plain loops in f64.
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

#include "cuda_stand_in/stand_in_test.h"
#include "support/expect_error.h"
#include "tessera/backend/cuda/kernels/long_rows.h"
#include "tessera/backend/gpu/generated_kernel.h"
#include "tessera/graph/build.h"
#include "tessera/tessera.h"

namespace tessera::test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

using Doubles = std::vector<double>;

class CudaLongRowKernels : public OnStandIn<> {
 protected:
  void SetUp() override {
    OnStandIn<>::SetUp();
    if (!IsSkipped()) before_ = launches();
  }
  static int64_t launches() {
    return stand_in<int64_t(const char*)>(STAND_IN_DRIVER,
                                          "stand_in_launches")("tessera_long_rows");
  }
  void expect_launches(int64_t count) const { EXPECT_EQ(launches() - before_, count); }

 private:
  int64_t before_ = 0;
};

Doubles numbers(const Tensor& x) {
  const std::vector<float> values = cast(x, DType::f32).to_vector<float>();
  return {values.begin(), values.end()};
}

// `from` elements behind where memory begins.
Tensor waves(const Shape& shape, float step, DType dtype, int64_t from = 0) {
  std::vector<float> values(size_t(numel(shape) + from));
  for (size_t i = 0; i < values.size(); ++i) values[i] = 1 + 3 * std::sin(step * float(i % 65521));
  const Tensor whole = cast(tensor(values, {int64_t(values.size())}), dtype).eval();
  return reshape(slice(whole, 0, from, from + numel(shape)), shape);
}

Doubles softmax_of(const Doubles& x, size_t columns) {
  Doubles y(x.size());
  for (size_t begin = 0; begin < x.size(); begin += columns) {
    double greatest = -INFINITY, total = 0;
    for (size_t i = begin; i < begin + columns; ++i) greatest = std::max(greatest, x[i]);
    for (size_t i = begin; i < begin + columns; ++i) total += y[i] = std::exp(x[i] - greatest);
    for (size_t i = begin; i < begin + columns; ++i) y[i] /= total;
  }
  return y;
}

struct Norm {
  Doubles y, mean, rstd;
};

Norm norm_of(const Doubles& x, const Doubles& gamma, const Doubles& beta, double epsilon) {
  const size_t columns = gamma.size();
  Norm norm;
  for (size_t begin = 0; begin < x.size(); begin += columns) {
    double sum = 0, squares = 0;
    for (size_t i = 0; i < columns; ++i) sum += x[begin + i];
    const double mean = sum / double(columns);
    for (size_t i = 0; i < columns; ++i) squares += std::pow(x[begin + i] - mean, 2);
    const double rstd = 1 / std::sqrt(squares / double(columns) + epsilon);
    norm.mean.push_back(mean);
    norm.rstd.push_back(rstd);
    for (size_t i = 0; i < columns; ++i) {
      norm.y.push_back((x[begin + i] - mean) * rstd * gamma[i] + beta[i]);
    }
  }
  return norm;
}

// Within `ulps` of a result that is rounded to the type, and of `floor` where it is small.
void expect_near(const Tensor& y, const Doubles& expected, double ulps, double floor) {
  const double ulp = y.dtype() == DType::f32 ? 0x1p-23 : y.dtype() == DType::f16 ? 0x1p-10 : 0x1p-7;
  const Doubles found = numbers(y);
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    const double scale = std::max(std::abs(expected[i]), floor);
    ASSERT_NEAR(found[i], expected[i], ulps * ulp * scale) << i;
  }
}

// A half is off by its rounding, and hardly more.
double ulps_of(DType dtype) { return is_half(dtype) ? 0.51 : 12; }

struct Case {
  int64_t rows, columns;
  DType dtype;
  int64_t from = 0;
};

// For one, two, four and eight groups; one row, few, and more than are under way at once; rows that
// begin anywhere.
constexpr Case kCases[] = {
    {1, 16385, DType::f32},     {19, 16385, DType::bf16}, {3, 20011, DType::f16, 1},
    {2, 40002, DType::f32, 3},  {9, 50257, DType::f32},   {10, 50257, DType::bf16, 5},
    {2, 131071, DType::f32, 2}, {1, 131071, DType::f16},  {2, 131071, DType::bf16, 7},
};

TEST_F(CudaLongRowKernels, Softmax) {
  for (const auto& [rows, columns, dtype, from] : kCases) {
    SCOPED_TRACE(cat(rows, " ", columns, " ", dtype, " ", from));
    const Tensor x = waves({rows, columns}, 0.37f, dtype, from), y = softmax(x, -1).eval();
    // What f16 cannot hold in full is off by a part of its smallest number.
    const double floor = dtype == DType::f16 ? 0x1p-14 : 0;
    expect_near(y, softmax_of(numbers(x), size_t(columns)), ulps_of(dtype), floor);
  }
  expect_launches(std::ssize(kCases));
}

TEST_F(CudaLongRowKernels, LayerNorm) {
  for (const auto& [rows, columns, dtype, from] : kCases) {
    SCOPED_TRACE(cat(rows, " ", columns, " ", dtype, " ", from));
    const Tensor x = waves({rows, columns}, 0.37f, dtype, from);
    const Tensor gamma = waves({columns}, 0.7f, dtype), beta = waves({columns}, 0.11f, dtype);
    const Tensor y = layer_norm(x, gamma, beta).eval();
    const Norm expected = norm_of(numbers(x), numbers(gamma), numbers(beta), 1e-5);
    expect_near(y, expected.y, ulps_of(dtype), is_half(dtype) ? 0.01 : 1);
  }
  expect_launches(std::ssize(kCases));
}

TEST_F(CudaLongRowKernels, RowsBehindOthersAndWeightsThatBeginAnywhere) {
  for (const auto& [dtype, gamma_from, beta_from] :
       {std::tuple(DType::f32, 1, 1), std::tuple(DType::f32, 0, 3), std::tuple(DType::bf16, 6, 6),
        std::tuple(DType::bf16, 2, 5)}) {
    SCOPED_TRACE(cat(dtype, " ", gamma_from, " ", beta_from));
    const int64_t columns = 20011;
    const Tensor all = waves({4, columns}, 0.37f, dtype), x = slice(all, 0, 1, 4);
    const Tensor gamma = waves({columns}, 0.7f, dtype, gamma_from);
    const Tensor beta = waves({columns}, 0.11f, dtype, beta_from);
    const Tensor y = layer_norm(x, gamma, beta, 0.5).eval(), shares = softmax(x, -1).eval();
    const Norm expected = norm_of(numbers(x), numbers(gamma), numbers(beta), 0.5);
    expect_near(y, expected.y, ulps_of(dtype), is_half(dtype) ? 0.01 : 1);
    expect_near(shares, softmax_of(numbers(x), size_t(columns)), ulps_of(dtype), 0);
  }
  expect_launches(8);
}

TEST_F(CudaLongRowKernels, EachStatisticAlone) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const int64_t columns = 50257;
    const Tensor x = waves({3, columns}, 0.37f, dtype), gamma = waves({columns}, 0.7f, dtype);
    const Norm expected = norm_of(numbers(x), numbers(gamma), numbers(gamma), 1e-3);
    const auto output = [&](size_t i) {
      return Tensor(graph::layer_norm(x.value(), gamma.value(), gamma.value(), 1e-3)[i]).eval();
    };
    expect_near(output(0), expected.y, ulps_of(dtype), is_half(dtype) ? 0.01 : 1);
    expect_near(output(1), expected.mean, 12, 0);
    expect_near(output(2), expected.rstd, 12, 0);
  }
  expect_launches(6);
}

// Rows of NaN: with an inf, with a NaN, of -inf alone. One that has no number but in its last piece
// is as any other.
TEST_F(CudaLongRowKernels, RowsWithoutNumbers) {
  constexpr size_t kColumns = 50257;
  for (const DType dtype : {DType::f32, DType::f16}) {
    std::vector<float> values(5 * kColumns, 1);
    values[100] = kInfinity;
    values[2 * kColumns - 1] = NAN;
    std::fill_n(values.begin() + 2 * kColumns, kColumns + kColumns * 3 / 4, -kInfinity);
    const Tensor x = cast(tensor(values, {5, int64_t(kColumns)}), dtype).eval();
    const Doubles y = numbers(softmax(x, -1).eval());
    const Doubles expected = softmax_of(numbers(x), kColumns);
    for (size_t i = 0; i < y.size(); ++i) {
      if (i < 3 * kColumns) {
        ASSERT_TRUE(std::isnan(y[i])) << i;
      } else {
        ASSERT_NEAR(y[i], expected[i], 1e-7) << i;
      }
    }
    const Tensor ones = cast(full({int64_t(kColumns)}, 1), dtype).eval();
    const std::vector<Value> norm = graph::layer_norm(x.value(), ones.value(), ones.value(), 1e-5);
    const Doubles mean = numbers(Tensor(norm[1]).eval()), rstd = numbers(Tensor(norm[2]).eval());
    EXPECT_EQ(mean[0], kInfinity);
    EXPECT_TRUE(std::isnan(mean[1]));
    EXPECT_EQ(mean[2], -kInfinity);
    for (size_t row = 0; row < 4; ++row) EXPECT_TRUE(std::isnan(rstd[row])) << row;
    const Doubles normed = numbers(Tensor(norm[0]).eval());
    for (size_t i = 0; i < 4 * kColumns; ++i) ASSERT_TRUE(std::isnan(normed[i])) << i;
    for (size_t i = 4 * kColumns; i < normed.size(); ++i) ASSERT_EQ(normed[i], 1) << i;
  }
  expect_launches(8);
}

TEST_F(CudaLongRowKernels, Gradients) {
  constexpr size_t kColumns = 20011;
  const Tensor x = waves({2, kColumns}, 0.37f, DType::f32),
               g = waves({2, kColumns}, 0.1f, DType::f32);
  const Tensor gamma = waves({kColumns}, 0.7f, DType::f32).eval();
  const Doubles xs = numbers(x), gs = numbers(g), ws = numbers(gamma);
  const Doubles y = softmax_of(xs, kColumns);
  const Norm norm = norm_of(xs, ws, ws, 1e-5);
  Doubles of_softmax(xs.size()), of_norm(xs.size());
  for (size_t row = 0; row < 2; ++row) {
    double shared = 0, slopes = 0, turned = 0;
    const auto normed = [&](size_t i) { return (xs[i] - norm.mean[row]) * norm.rstd[row]; };
    for (size_t c = 0, i = row * kColumns; c < kColumns; ++c, ++i) {
      shared += gs[i] * y[i];
      slopes += gs[i] * ws[c] / kColumns;
      turned += gs[i] * ws[c] * normed(i) / kColumns;
    }
    for (size_t c = 0, i = row * kColumns; c < kColumns; ++c, ++i) {
      of_softmax[i] = y[i] * (gs[i] - shared);
      of_norm[i] = norm.rstd[row] * (gs[i] * ws[c] - slopes - normed(i) * turned);
    }
  }
  auto step = compile([&] {
    const Tensor shares = softmax(x, -1), normed = layer_norm(x, gamma, gamma);
    return std::vector{grad(sum(shares * g), {x})[0], normed, grad(sum(normed * g), {x})[0]};
  });
  const std::vector<Tensor> found = step();
  expect_near(found[0], of_softmax, 100, 1e-4);
  expect_near(found[1], norm.y, 12, 1);
  expect_near(found[2], of_norm, 100, 1);
}

TEST_F(CudaLongRowKernels, InPlace) {
  constexpr int64_t kRows = 9, kColumns = 50257, kBytes = 4 * kRows * kColumns;
  const Tensor x = waves({kRows, kColumns}, 0.37f, DType::f32);
  KernelCall call;
  call.kernel = "softmax";
  call.operands.assign(2, {DType::f32, contiguous_view({kRows, kColumns})});
  Backend& device = backend(kCuda);
  const auto kernel = device.compile(call);
  const auto memory = device.allocate(kBytes);
  std::vector<float> values = x.to_vector<float>();
  device.upload({memory->handle, 0}, values.data(), kBytes, Stream{});
  const BufferRef both[] = {{memory->handle, 0}, {memory->handle, 0}};
  device.launch(*kernel, both, kRows, Stream{});
  device.download(values.data(), {memory->handle, 0}, kBytes, Stream{});
  expect_near(tensor(values, {kRows, kColumns}), softmax_of(numbers(x), kColumns), 12, 0);
  expect_launches(1);
}

TEST_F(CudaLongRowKernels, OtherRowsAreGenerated) {
  softmax(waves({2, 16384}, 0.37f, DType::f32), -1).eval();
  softmax(waves({2, 20011}, 0.37f, DType::f64), -1).eval();
  (softmax(waves({2, 20011}, 0.37f, DType::f32), -1) * 2).eval();
  expect_launches(0);
  KernelCall call;
  call.kernel = "softmax";
  call.operands.assign(2, {DType::f32, contiguous_view({2, 16384})});
  EXPECT_EQ(error_text([&] { backend(kCuda).compile(call); }),
            "cuda:0: expected the name of a kernel it has, got 'softmax'");
  call.operands.pop_back();
  EXPECT_EQ(error_text([&] { backend(kCuda).compile(call); }),
            "softmax: expected 2 operands, got 1");
}

TEST_F(CudaLongRowKernels, CanBeSwitchedOff) {
  EXPECT_TRUE(backend(kCuda).target().is_long_row(DType::f32, 16385));
  const bool before = std::exchange(gpu::tuning().long_rows, false);
  EXPECT_FALSE(make_cuda_backend(0)->target().is_long_row(DType::f32, 16385));
  gpu::tuning().long_rows = before;
}

TEST(CudaLongRowsPlan, DividesThemByTheirLength) {
  constexpr int64_t kShared = 232448;
  const auto plan = [](int64_t columns, DType dtype) {
    const cuda::LongRowsPlan p = cuda::plan_long_rows(columns, dtype, kShared);
    return std::tuple(p.groups, p.piece, p.kept_bytes);
  };
  EXPECT_EQ(plan(16385, DType::f32), std::tuple(1, 16416, 65680));
  EXPECT_EQ(plan(50257, DType::bf16), std::tuple(1, 50272, 100560));
  EXPECT_EQ(plan(50257, DType::f32), std::tuple(2, 25152, 100624));
  EXPECT_EQ(plan(131072, DType::bf16), std::tuple(4, 32768, 65552));
  EXPECT_EQ(plan(131072, DType::f32), std::tuple(8, 16384, 65552));
  gpu::DeviceTraits device;
  device.local_bytes_asked = kShared;
  EXPECT_EQ(cuda::longest_row(device), 0) << "no clusters";
  device.cluster_groups = 8;
  const int64_t longest = cuda::longest_row(device);
  EXPECT_GT(longest, 900'000);
  for (int64_t bytes = longest - 1000; bytes <= longest; ++bytes) {
    for (const DType dtype : {DType::f32, DType::bf16}) {
      const cuda::LongRowsPlan p = cuda::plan_long_rows(bytes / size_of(dtype), dtype, kShared);
      ASSERT_LE(2 * (p.kept_bytes + 2048), kShared) << bytes;
    }
  }
  device.local_bytes_asked = 4096;
  EXPECT_EQ(cuda::longest_row(device), 0) << "no memory";
}

}  // namespace
}  // namespace tessera::test
