// Rendered reductions of rows that the groups of a cluster share, run on the host.
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "codegen/host_kernel.h"
#include "codegen/rendered_rows.h"
#include "codegen/zoo.h"
#include "kernel/ir_builder.h"

namespace tessera {
namespace {

class SharedRows : public WithHostCompiler<testing::Test> {};

// Held by the registers of two, four or eight groups of two warps, which start anywhere or not.
TEST_F(SharedRows, Softmax) {
  const auto clusters = std::to_array<std::pair<int64_t, int>>(
      {{1025, 1}, {2048, 1}, {2049, 2}, {4096, 2}, {4099, 4}, {8002, 4}, {8003, 4}, {16384, 8}});
  for (const auto& [cols, groups] : clusters) {
    SCOPED_TRACE(cols);
    const RenderOptions options = {.max_group_size = 32,
                                   .max_row_group = 64,
                                   .cluster_groups = 8,
                                   .alignment = 16,
                                   .narrow_index = true};
    const HostKernel kernel(softmax_kernel(DType::f32, 1, cols), options);
    EXPECT_EQ(kernel.rendered().cluster, groups);
    EXPECT_EQ(kernel.rendered().group_count(softmax_kernel(DType::f32, 1, cols), 7), 7 * groups);
    const std::vector<float> x = waves(7 * cols);
    std::vector<float> y = x, m(7);
    EXPECT_EQ(kernel(7, y, y, m), 0);
    expect_softmax(x, y, m, size_t(cols));
  }
}

template <class T>
void expect_layer_norm(const HostKernel& kernel, int64_t cols, double tolerance) {
  constexpr int64_t kRows = 5;
  std::vector<T> x, gamma, beta, y(size_t(kRows * cols) + 1, T(-7.0f));
  for (const float v : waves(kRows * cols)) x.push_back(T(v + 1));
  for (int64_t i = 0; i < cols; ++i) gamma.push_back(T(float(i % 13) + 1));
  for (int64_t i = 0; i < cols; ++i) beta.push_back(T(float(i % 7)));
  EXPECT_EQ(kernel(kRows, x, gamma, beta, y), 0);
  for (int64_t row = 0; row < kRows; ++row) {
    const T* const at = &x[size_t(row * cols)];
    double mean = 0, variance = 0;
    for (int64_t i = 0; i < cols; ++i) mean += double(at[i]) / double(cols);
    for (int64_t i = 0; i < cols; ++i) {
      variance += (double(at[i]) - mean) * (double(at[i]) - mean) / double(cols);
    }
    for (int64_t i = 0; i < cols; ++i) {
      const double normed = (double(at[i]) - mean) / std::sqrt(variance + 1e-5);
      const double expected = normed * double(gamma[size_t(i)]) + double(beta[size_t(i)]);
      ASSERT_NEAR(double(y[size_t(row * cols + i)]), expected,
                  tolerance * std::max(1.0, std::fabs(expected)))
          << row << " " << i;
    }
  }
  EXPECT_EQ(float(y.back()), -7) << "written past the end";
}

// Weights are read beside the row.
TEST_F(SharedRows, LayerNorm) {
  for (const int64_t cols : {2052, 3002, 5004}) {
    SCOPED_TRACE(cols);
    const RenderOptions options = {
        .max_group_size = 32, .max_row_group = 64, .cluster_groups = 8, .alignment = 16};
    const HostKernel singles(layer_norm_kernel(DType::f32, 1, cols), options),
        halves(layer_norm_kernel(DType::bf16, 1, cols), options);
    for (const HostKernel* kernel : {&singles, &halves}) {
      EXPECT_GT(kernel->rendered().cluster, 1);
    }
    expect_layer_norm<float>(singles, cols, 2e-5);
    expect_layer_norm<bf16>(halves, cols, 0.01);
  }
}

// y = x - max + argmax: a position and its value go from group to group together, once a row.
TEST_F(SharedRows, Argmax) {
  constexpr int64_t kRows = 6, kCols = 2500;
  IrBuilder b("argmax add", {kRows, kCols}, 1);
  const int x = b.in(DType::f64), y = b.out(DType::f64);
  const int v = b.load(x, {kCols, 1});
  const int at = b.cast(b.reduce(ReduceOp::argmax, v), DType::f64);
  b.store(y, {kCols, 1}, b.scalar(ScalarOp::add, {v, at}));
  const RenderOptions options = {
      .max_group_size = 32, .max_row_group = 64, .cluster_groups = 4, .alignment = 16};
  const HostKernel kernel(b.build(), options);
  EXPECT_EQ(kernel.rendered().cluster, 4);  // f64 takes two registers
  std::vector<double> in(size_t(kRows * kCols), 1), out(in.size());
  const std::vector<int64_t> tops = {0, 2499, 1234, 700, 2000, 63};
  for (size_t row = 0; row < tops.size(); ++row) {
    in[row * kCols + size_t(tops[row])] = in[row * kCols + 2499] = 5;
  }
  EXPECT_EQ(kernel(kRows, in, out), 0);
  for (size_t i = 0; i < in.size(); ++i) EXPECT_EQ(out[i], in[i] + double(tops[i / kCols])) << i;
}

}  // namespace
}  // namespace tessera
