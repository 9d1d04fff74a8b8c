// Losses and gradients of embeddings on the stand-in, against the CPU.
#include <cmath>
#include <limits>

#include "cuda_stand_in/stand_in_test.h"
#include "support/expect_error.h"
#include "tessera/backend/cuda/kernels/cross_entropy.h"
#include "tessera/backend/cuda/kernels/scatter_rows.h"
#include "tessera/backend/cuda/session.h"
#include "tessera/graph/build.h"
#include "tessera/tessera.h"

namespace tessera::test {
namespace {

class CudaLossTest : public OnStandIn<> {};

using Lists = std::vector<std::vector<float>>;

Tensor waves(const Shape& shape, float step, DType dtype) {
  std::vector<float> values(size_t(numel(shape)));
  for (size_t i = 0; i < values.size(); ++i) values[i] = 4 * std::sin(step * float(i));
  return cast(tensor(values, shape), dtype);
}

std::vector<int64_t> scattered(int64_t count, int64_t below) {
  std::vector<int64_t> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(i * i * 7919 % below);
  return values;
}

void expect_close(const Lists& here, const Lists& there, double tolerance) {
  ASSERT_EQ(here.size(), there.size());
  for (size_t k = 0; k < here.size(); ++k) {
    ASSERT_EQ(here[k].size(), there[k].size());
    double largest = 0;
    for (const float value : there[k]) largest = std::max<double>(largest, std::abs(value));
    for (size_t i = 0; i < here[k].size(); ++i) {
      ASSERT_NEAR(here[k][i], there[k][i], tolerance * largest) << k << " " << i;
    }
  }
}

Lists loss_and_gradient(Device where, DType dtype, int64_t rows, int64_t columns, int64_t from) {
  set_default_device(where);
  const Tensor whole = waves({rows * columns + from}, 0.37f, dtype);
  whole.eval();
  const Tensor x = reshape(slice(whole, 0, from, from + rows * columns), {rows, columns});
  const Tensor targets = tensor(scattered(rows, columns), {rows});
  const Tensor loss = cross_entropy(x, targets, {.ignore_index = targets.to_vector<int64_t>()[0]});
  return {cast(loss, DType::f32).to_vector<float>(),
          cast(grad(loss, {x})[0], DType::f32).to_vector<float>()};
}

// Rows of odd lengths that begin anywhere, of few and of many lanes, and too long to be kept.
TEST_F(CudaLossTest, LossAndGradientOfAnyRow) {
  for (const auto& [rows, columns, dtype, from] :
       {std::tuple(5, 2, DType::f32, 0), std::tuple(7, 10, DType::bf16, 0),
        std::tuple(7, 10, DType::f16, 3), std::tuple(9, 257, DType::bf16, 1),
        std::tuple(3, 5000, DType::bf16, 0), std::tuple(3, 4999, DType::f32, 2),
        std::tuple(2, 50304, DType::bf16, 0), std::tuple(2, 60000, DType::f32, 0),
        std::tuple(4, 33, DType::f64, 1)}) {
    SCOPED_TRACE(cat(rows, " ", columns, " ", name(dtype), " ", from));
    expect_close(loss_and_gradient(kCuda, dtype, rows, columns, from),
                 loss_and_gradient(DeviceKind::cpu, dtype, rows, columns, from),
                 is_half(dtype) ? 0.01 : 1e-5);
  }
}

TEST_F(CudaLossTest, InfinitiesAreAsOnTheCpu) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const auto losses = [](Device where, DType dtype) {
    set_default_device(where);
    std::vector<float> values(4 * 40, -kInfinity);
    for (size_t i = 40; i < values.size(); ++i) values[i] = float(i % 7) * 100;
    values[45] = kInfinity;
    values[85] = NAN;
    values[125] = -kInfinity;
    const Tensor x = cast(tensor(values, {4, 40}), dtype);
    return cross_entropy(x, tensor<int64_t>({1, 2, 3, 6}, {4}), {.reduction = Reduction::none})
        .to_vector<float>();
  };
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const auto here = losses(kCuda, dtype), there = losses(DeviceKind::cpu, dtype);
    for (size_t i = 0; i < 4; ++i) {
      if (std::isnan(there[i])) {
        EXPECT_TRUE(std::isnan(here[i])) << i;
      } else if (std::isinf(there[i])) {
        EXPECT_EQ(here[i], there[i]) << i;
      } else {
        EXPECT_NEAR(here[i], there[i], 1e-3) << i;
      }
    }
  }
}

TEST_F(CudaLossTest, ATargetOutOfRangeIsAnError) {
  const Tensor x = waves({2, 5}, 0.3f, DType::f32);
  for (const int64_t target : {int64_t(5), int64_t(-1)}) {
    EXPECT_NE(error_text([&] {
                cross_entropy(x, tensor<int64_t>({4, target}, {2})).item();
              }).find("cross_entropy: a target is out of range [0, 5)"),
              std::string::npos);
  }
  EXPECT_NEAR(cross_entropy(x, tensor<int64_t>({4, 0}, {2})).item(), 1.9, 1.5);
}

// Loss and gradient are one kernel, unless the gradient depends on the loss.
TEST_F(CudaLossTest, LossAndGradientReadTheLogitsOnce) {
  const Tensor x = waves({6, 64}, 0.3f, DType::bf16);
  const Tensor targets = tensor(scattered(6, 64), {6});
  Var scale(scalar(1024.f), "scale", false);
  x.eval();
  targets.eval();
  const auto count = [&](bool squared) {
    auto step = compile([&] {
      Tensor loss = cross_entropy(x, targets) * scale.value();
      if (squared) loss = loss * loss;
      return std::vector<Tensor>{loss, grad(loss, {x})[0]};
    });
    step();
    int kernels = 0;
    for (const Instruction& each : step.program().instructions) {
      kernels += each.call.kernel == "cross_entropy";
    }
    return kernels;
  };
  EXPECT_EQ(count(false), 1);
  EXPECT_EQ(count(true), 2);
}

TEST(CudaLosses, AreDividedByTheirLength) {
  const auto plan = [](int64_t columns, DType dtype, int64_t shared = 232448) {
    const cuda::EntropyPlan p = cuda::plan_entropy(columns, dtype, shared);
    return std::pair(p.lanes, p.kept_bytes);
  };
  EXPECT_EQ(plan(50304, DType::bf16), std::pair(512, int64_t(100608)));
  EXPECT_EQ(plan(50257, DType::bf16), std::pair(512, int64_t(100512)));
  EXPECT_EQ(plan(50304, DType::f32), std::pair(1024, int64_t(201216)));
  EXPECT_EQ(plan(50304, DType::f64), std::pair(256, int64_t(0)));
  EXPECT_EQ(plan(10, DType::bf16), std::pair(32, int64_t(16)));
  EXPECT_EQ(plan(50304, DType::bf16, 49152), std::pair(512, int64_t(0)));
  KernelCall call;
  call.kernel = "cross_entropy";
  EXPECT_EQ(error_text([&] { backend(kCuda).compile(call); }),
            "cross_entropy: expected 5 operands, got 0");
}

// Rows that nobody asks for, that one asks for, and that thousands do: whole chunks of them.
TEST_F(CudaLossTest, GradientsOfEmbeddings) {
  const auto gradient = [](Device where, DType dtype, int64_t count, int64_t rows, int64_t columns,
                           int64_t most) {
    set_default_device(where);
    const Tensor table = waves({rows, columns}, 0.7f, dtype);
    std::vector<int64_t> index = scattered(count, rows);
    for (size_t i = 0; i < size_t(most); ++i) index[i * 7 % index.size()] = rows - 1;
    const Tensor g = waves({count, columns}, 0.013f, dtype);
    const Tensor y = sum(take(table, tensor(index, {count}), 0) * g);
    return Lists{cast(grad(y, {table})[0], DType::f32).to_vector<float>()};
  };
  for (const auto& [count, rows, columns, most, dtype] :
       {std::tuple(5, 3, 7, 0, DType::f32), std::tuple(3000, 700, 24, 0, DType::bf16),
        std::tuple(3000, 70000, 4, 500, DType::f32), std::tuple(2500, 300, 9, 1200, DType::f16),
        std::tuple(1000, 1, 8, 0, DType::f64), std::tuple(600, 256, 264, 600, DType::f32)}) {
    SCOPED_TRACE(cat(count, " ", rows, " ", columns, " ", most, " ", name(dtype)));
    const auto here = gradient(kCuda, dtype, count, rows, columns, most);
    expect_close(here, gradient(DeviceKind::cpu, dtype, count, rows, columns, most),
                 is_half(dtype) ? 0.01 : 1e-5);
    EXPECT_EQ(here, gradient(kCuda, dtype, count, rows, columns, most)) << "bit by bit";
  }
}

// What take's gradient asks for is what the kernel takes.
TEST_F(CudaLossTest, AnEmbeddingsGradientIsOfRows) {
  const Tensor table = waves({40, 8}, 0.7f, DType::bf16);
  const Tensor index = tensor(scattered(6, 40), {2, 3});
  const Tensor g = waves({2, 3, 8}, 0.1f, DType::bf16);
  table.eval();
  index.eval();
  g.eval();
  auto gradient = compile([&] { return grad(sum(take(table, index, 0) * g), {table})[0]; });
  gradient();
  cuda::Session session(0, cuda::devices().list[0], "cuda:0");
  int found = 0;
  for (const Instruction& each : gradient.program().instructions) {
    if (each.call.kernel != "scatter_add") continue;
    EXPECT_TRUE(cuda::make_scatter_rows(session, each.call));
    KernelCall other = each.call;
    other.operands[1].view.strides[1] = 1;
    EXPECT_FALSE(cuda::make_scatter_rows(session, other)) << "columns with indices of their own";
    ++found;
  }
  EXPECT_EQ(found, 1);
}

TEST_F(CudaLossTest, AnEmbeddingsIndexOutOfRangeIsAnError) {
  const Tensor table = waves({4, 8}, 0.7f, DType::f32);
  for (const int64_t wrong : {int64_t(4), int64_t(-1)}) {
    const Tensor index = tensor<int64_t>({0, wrong}, {2});
    const Tensor y(graph::scatter_add(table.value(),
                                      graph::expand(reshape(index, {2, 1}).value(), {2, 8}),
                                      waves({2, 8}, 0.1f, DType::f32).value(), 0));
    EXPECT_NE(error_text([&] {
                y.to_vector<float>();
              }).find("scatter_add: an index is out of range [0, 4)"),
              std::string::npos);
  }
}

}  // namespace
}  // namespace tessera::test
