// Tensors on an OpenCL device: the same numbers as on the CPU, by training, drawing, moving.
#include <cmath>
#include <functional>
#include <thread>

#include "backend_opencl/opencl_test.h"
#include "support/device_attention.h"
#include "support/expect_error.h"
#include "tessera/backend/opencl/kernels/clblast.h"
#include "tessera/conformance/reference.h"
#include "tessera/tessera.h"

namespace tessera::test {
namespace {

class OpenClTensor : public OnOpenCl<> {};

TEST_F(OpenClTensor, MovesBothWays) {
  const Tensor here = tensor<float>({1, 2, 3}, {3});
  EXPECT_EQ(here.device(), kOpenCl);
  const Tensor there = here.to(DeviceKind::cpu);
  EXPECT_EQ(there.device(), DeviceKind::cpu);
  const Tensor back = (there * 2).to(kOpenCl);
  EXPECT_EQ(back.device(), kOpenCl);
  EXPECT_EQ((back + here).to_vector<float>(), (std::vector<float>{3, 6, 9}));
}

// Integers and floats in [0, 1) have equal bits on every device.
TEST_F(OpenClTensor, DrawsTheNumbersOfTheCpu) {
  auto draw = [](Device device) {
    set_default_device(device);
    const Random random(7);
    const std::vector<float> uniform = random.uniform({1031}).to_vector<float>();
    const std::vector<int64_t> integers = random.randint({517}, -5, 1000000).to_vector<int64_t>();
    const std::vector<int64_t> order = random.permutation(301).to_vector<int64_t>();
    return std::tuple(uniform, integers, order);
  };
  EXPECT_EQ(draw(kOpenCl), draw(DeviceKind::cpu));
}

void expect_equal_to_cpu(const std::function<Tensor()>& make, double tolerance) {
  set_default_device(DeviceKind::cpu);
  const std::vector<double> expected = cast(make(), DType::f64).to_vector<double>();
  set_default_device(kOpenCl);
  const std::vector<double> got = cast(make(), DType::f64).to_vector<double>();
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_NEAR(got[i], expected[i], tolerance * std::max(1.0, std::abs(expected[i]))) << i;
  }
}

// One row, which several loops walk, with and without points left over.
TEST_F(OpenClTensor, VectorsAreRowsToo) {
  for (const int64_t n : {1, 6, 1000, 9001}) {
    const auto x = [n] { return sin(arange(n, DType::f32)) * 3.f; };
    expect_equal_to_cpu([&] { return softmax(x(), 0); }, 1e-6);
    expect_equal_to_cpu([&] { return logsumexp(x()); }, 1e-6);
    expect_equal_to_cpu([&] { return x() - mean(x() * x()); }, 1e-5);
  }
}

TEST_F(OpenClTensor, FoldsOfDrawnNumbers) {
  for (const Shape& shape : {Shape{33, 3}, Shape{50, 37}, Shape{7, 100}}) {
    expect_equal_to_cpu([&] { return sum(Random(7).uniform(shape), {0}); }, 1e-5);
    expect_equal_to_cpu([&] { return sum(Random(7).normal(shape), {0}); }, 1e-4);
    expect_equal_to_cpu([&] { return sum(Random(7).uniform(shape), {1}); }, 1e-5);
  }
}

// docs/dtypes.md: the nearest end of the range, and 0 for NaN.
TEST_F(OpenClTensor, CastsStayInRange) {
  const std::vector<float> values = {300.7f, -1.5f, 3e9f,  -3e9f, 1e20f,    -1e20f,  NAN,
                                     -0.5f,  2.9f,  -2.9f, 255.f, INFINITY, -128.9f, 127.9f};
  for (const DType to : {DType::i8, DType::i32, DType::i64, DType::u8, DType::u32}) {
    for (const DType from : {DType::f32, DType::f64, DType::bf16}) {
      SCOPED_TRACE(cat(name(from), " to ", name(to)));
      expect_equal_to_cpu(
          [&] { return cast(cast(tensor(values, {int64_t(values.size())}), from), to); }, 0);
    }
  }
}

// A transposed column is as contiguous as the row it was: the result takes its place.
TEST_F(OpenClTensor, UpdatesInPlaceThroughUnitAxes) {
  const auto x = [] { return transpose(matmul(ones({1, 3}), ones({3, 5})), 0, 1); };
  const auto index = [] { return tensor<int64_t>({0, 0, 0, 0, 0}, {5, 1}); };
  const auto source = [] { return tensor<float>({1, 2, 3, 4, 5}, {5, 1}); };
  expect_equal_to_cpu([&] { return scatter(x(), index(), source(), 1) + 1.f; }, 0);
  expect_equal_to_cpu([&] { return scatter_add(x(), index(), source(), 1) + 1.f; }, 0);
  expect_equal_to_cpu(
      [&] {
        return dynamic_update_slice(x(), ones({2, 1}), scalar(int64_t(1)), 0) + 1.f;
      },
      0);
}

// An MLP with layer_norm, dropout and an embedding, trained for some steps.
struct Trained {
  std::vector<double> losses;
  std::vector<std::vector<float>> parameters;
};

Trained train(Device device) {
  set_default_device(device);
  const Random random(3);
  const Embedding table("table", 11, 16, random);
  const Linear first("first", 16, 32, random), last("last", 32, 5, random);
  const LayerNorm norm("norm", 32);
  std::vector<Var> parameters;
  for (const Layer* layer : std::initializer_list<const Layer*>{&table, &first, &norm, &last}) {
    for (const Var& var : layer->parameters()) parameters.push_back(var);
  }
  AdamW optimizer(parameters, {.lr = 0.01});
  const ModeGuard training(true);
  const auto step = compile([&](const Tensor& words, const Tensor& classes) {
    const Tensor hidden = random.dropout(gelu(norm(first(table(words)))), 0.1);
    const Tensor loss = cross_entropy(last(hidden), classes);
    backward(loss);
    optimizer.step();
    return loss;
  });
  std::vector<int64_t> words, classes;
  for (int64_t i = 0; i < 24; ++i) {
    words.push_back(i * 7 % 11);
    classes.push_back(i * 3 % 5);
  }
  Trained result;
  for (int i = 0; i < 5; ++i) {
    const Tensor loss = step(tensor(words, {24}), tensor(classes, {24}));
    result.losses.push_back(loss.item());
  }
  for (const Var& var : parameters) result.parameters.push_back(var.value().to_vector<float>());
  return result;
}

TEST_F(OpenClTensor, TrainsAsTheCpuDoes) {
  const Trained here = train(kOpenCl), expected = train(DeviceKind::cpu);
  EXPECT_LT(here.losses.back(), here.losses.front());
  for (size_t i = 0; i < expected.losses.size(); ++i) {
    EXPECT_NEAR(here.losses[i], expected.losses[i], 1e-5) << "step " << i;
  }
  for (size_t i = 0; i < expected.parameters.size(); ++i) {
    ASSERT_EQ(here.parameters[i].size(), expected.parameters[i].size());
    for (size_t k = 0; k < expected.parameters[i].size(); ++k) {
      // AdamW divides by the root of tiny gradients: what differs in their last bits shows.
      EXPECT_NEAR(here.parameters[i][k], expected.parameters[i][k], 2e-4) << i << ", " << k;
    }
  }
}

TEST_F(OpenClTensor, RepeatsBitByBit) {
  const Trained first = train(kOpenCl), second = train(kOpenCl);
  EXPECT_EQ(first.losses, second.losses);
  EXPECT_EQ(first.parameters, second.parameters);
}

TEST_F(OpenClTensor, ServesSeveralThreads) {
  std::vector<std::thread> threads;
  std::vector<int> right(4, 0);
  for (size_t t = 0; t < right.size(); ++t) {
    threads.emplace_back([&right, t] {
      const Tensor x = full({1000}, double(t + 1));
      const Tensor index = tensor<int64_t>({7}, {1});
      for (int i = 0; i < 20; ++i) {
        const double value =
            gather(x * tensor<float>({float(i)}, {}), index, 0).item() + sum(x).item();
        right[t] += value == double((t + 1) * size_t(i + 1000));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, std::vector<int>(4, 20));
}

// A bad index is met at the next read; what comes after works.
TEST_F(OpenClTensor, NamesTheOpOfABadIndex) {
  const Tensor x = tensor<float>({1, 2, 3, 4, 5}, {5});
  const Tensor bad = tensor<int64_t>({1, 7}, {2}), good = tensor<int64_t>({1, 3}, {2});
  auto error_of = [](const Tensor& tensor) {
    return error_text([&] { tensor.to_vector<float>(); });
  };
  EXPECT_EQ(error_of(gather(x, bad, 0)).find("gather: an index is out of range [0, 5)"), 0u);
  EXPECT_EQ(error_of(scatter_add(x, bad, tensor<float>({1, 1}, {2}), 0)),
            "scatter_add: an index is out of range [0, 5)");
  EXPECT_EQ(gather(x, good, 0).to_vector<float>(), (std::vector<float>{2, 4}));
  const Tensor start = tensor<int64_t>({4}, {});
  EXPECT_EQ(error_of(dynamic_update_slice(x, tensor<float>({1, 1}, {2}), start, 0)),
            "update_slice: the start is out of range [0, 3]");
  EXPECT_EQ((x + 1).to_vector<float>(), (std::vector<float>{2, 3, 4, 5, 6}));
}

TEST_F(OpenClTensor, RunsAUsersKernel) {
  const CustomFunction twice = custom_op({
      .name = "twice",
      .types = [](std::span<const Type> in) { return std::vector<Type>{in[0]}; },
      .opencl = "__kernel void twice(__global const float* x, __global float* y, long n) {\n"
                "  const long i = get_global_id(0);\n"
                "  if (i < n) y[i] = 2 * x[i];\n"
                "}\n",
  });
  const Tensor x = random_tensor({1000}, 1);
  // Between neighbours its operands lie in the arena, at offsets.
  const std::vector<double> actual = to_doubles(twice(twice(x + 1) * 3) - 1);
  const std::vector<double> expected = to_doubles((x + 1) * 12 - 1);
  for (size_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(actual[i], expected[i], 1e-5);
}

KernelCall product_of(View a, View b, View c) {
  KernelCall call;
  call.kernel = "matmul";
  call.operands = {{DType::f32, a}, {DType::f32, b}, {DType::f32, c}};
  return call;
}

TEST_F(OpenClTensor, MultipliesLargeMatrices) {
  const Tensor a = random_tensor({150, 130}, 1), b = random_tensor({170, 130}, 2);
  const std::vector<double> expected = reference(matmul(a, transpose(b, 0, 1)));
  const std::vector<double> actual = to_doubles(matmul(a, transpose(b, 0, 1)));
  for (size_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(actual[i], expected[i], 2e-5);
}

TEST_F(OpenClTensor, GivesDenseProductsToClBlast) {
  const View square = contiguous_view({150, 150});
  const std::optional<opencl::DenseProduct> dense =
      opencl::dense_product(product_of(square, square, square));
  if (!dense) GTEST_SKIP() << "libclblast.so.1 is not installed, or TESSERA_CLBLAST is 0";
  EXPECT_FALSE(dense->a_transposed);
  View flipped = square;
  std::swap(flipped.strides[0], flipped.strides[1]);
  EXPECT_TRUE(opencl::dense_product(product_of(flipped, square, square))->a_transposed);
  EXPECT_FALSE(opencl::dense_product(product_of(square, square, flipped)));
  View stepped = square;
  stepped.strides = {300, 2};
  EXPECT_FALSE(opencl::dense_product(product_of(square, stepped, square)));
  const View small = contiguous_view({4, 4});
  EXPECT_FALSE(opencl::dense_product(product_of(small, small, small)));
  gpu::Operand nothing[3];
  EXPECT_NE(error_text([&] {
              opencl::multiply_dense(*dense, nothing, nullptr);
            }).find("matmul: CLBlast failed with status "),
            std::string::npos);
}

// A test for each, because PoCL takes seconds to compile their kernels.
class OpenClAttention : public OnOpenCl<::testing::TestWithParam<size_t>> {};

TEST_P(OpenClAttention, IsLikeTheCpu) {
  check_attention_tile(attention_tiles()[GetParam()], kOpenCl);
}

INSTANTIATE_TEST_SUITE_P(Tile, OpenClAttention,
                         ::testing::Range(size_t(0), attention_tiles().size()));

TEST_F(OpenClTensor, LayersOfAttentionNeedNoCopies) {
  check_attention_layer({2, 4, 2, 9, 9, 6, 6, true, true, true, 0.25, DType::f32}, kOpenCl, 1e-5);
}

}  // namespace
}  // namespace tessera::test
