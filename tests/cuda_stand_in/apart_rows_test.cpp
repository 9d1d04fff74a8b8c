// Rows that lie apart (compile/pad_rows), on the stand-in, against the CPU, whose rows are packed.
#include <algorithm>
#include <cmath>

#include "cuda_stand_in/stand_in_test.h"
#include "support/expect_error.h"
#include "tessera/tensor/eval.h"
#include "tessera/tessera.h"

namespace tessera::test {
namespace {

class CudaRowsTest : public OnStandIn<> {};

using Lists = std::vector<std::vector<float>>;

Tensor waves(const Shape& shape, float step, DType dtype) {
  std::vector<float> values(size_t(numel(shape)));
  for (size_t i = 0; i < values.size(); ++i) values[i] = std::sin(step * float(i));
  return cast(tensor(values, shape), dtype).eval();
}

std::vector<int64_t> tokens(int64_t count, int64_t step, int64_t below) {
  std::vector<int64_t> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(i * step % below);
  return values;
}

Lists values_of(const std::vector<Tensor>& tensors) {
  Lists lists;
  for (const Tensor& each : tensors) lists.push_back(cast(each, DType::f32).to_vector<float>());
  return lists;
}

// By the distance as vectors, relative to the second's length.
void expect_near(const Lists& here, const Lists& there, double tolerance) {
  ASSERT_EQ(here.size(), there.size());
  for (size_t k = 0; k < here.size(); ++k) {
    ASSERT_EQ(here[k].size(), there[k].size());
    double apart = 0, length = 0;
    for (size_t i = 0; i < here[k].size(); ++i) {
      apart += std::pow(double(here[k][i]) - there[k][i], 2);
      length += std::pow(double(there[k][i]), 2);
    }
    ASSERT_GT(length, 0) << k;
    EXPECT_LE(std::sqrt(apart / length), tolerance) << k;
  }
}

// Row strides of those operands of the kernel that are halves or floats of so many columns.
std::vector<int64_t> steps_of(const Program& program, std::string_view kernel, int64_t columns) {
  std::vector<int64_t> steps;
  for (const Instruction& each : program.instructions) {
    if (each.call.kernel != kernel) continue;
    for (const OperandView& operand : each.call.operands) {
      const View& view = operand.view;
      const int rank = view.shape.rank();
      if (rank < 2) continue;
      if (view.shape[rank - 1] == columns) steps.push_back(view.strides[rank - 2]);
      if (view.shape[rank - 2] == columns) steps.push_back(view.strides[rank - 1]);
    }
  }
  return steps;
}

struct Trained {
  Lists values;  // the loss, and the gradients of all parameters
  std::vector<int64_t> loss_steps, product_steps;
};

Trained train(Device where, int64_t vocabulary, DType dtype, bool pads = true) {
  set_default_device(where);
  CompileOptions options;
  options.pad_rows = pads;
  options.verify = true;
  const CompileOptions before = set_compile_options(options);
  const Gpt model({.vocabulary = vocabulary, .context = 8, .width = 24, .layers = 1, .heads = 3},
                  Random(3));
  model.to(dtype);
  const Tensor in = tensor(tokens(16, 5, vocabulary), {2, 8}).eval();
  const Tensor out = tensor(tokens(16, 7, vocabulary), {2, 8}).eval();
  auto step = compile([&] {
    std::vector<Tensor> results = {model.loss(in, out)}, parameters;
    for (const Var& each : model.parameters()) parameters.push_back(each.value());
    for (const Tensor& each : grad(results[0], parameters)) results.push_back(each);
    return results;
  });
  Trained trained{values_of(step()), {}, {}};
  trained.loss_steps = steps_of(step.program(), "cross_entropy", vocabulary);
  trained.product_steps = steps_of(step.program(), "matmul", vocabulary);
  for (const int64_t each : steps_of(step.program(), "matmul_add", vocabulary)) {
    trained.product_steps.push_back(each);
  }
  set_compile_options(before);
  return trained;
}

TEST_F(CudaRowsTest, AGptOfAnOddVocabulary) {
  for (const auto& [vocabulary, dtype, step] :
       {std::tuple(131, DType::bf16, 136), std::tuple(257, DType::bf16, 264),
        std::tuple(521, DType::bf16, 528),  // its products are cut behind 520
        std::tuple(131, DType::f32, 132)}) {
    SCOPED_TRACE(cat(vocabulary, " ", name(dtype)));
    const Trained here = train(kCuda, vocabulary, dtype);
    const Trained there = train(DeviceKind::cpu, vocabulary, dtype);
    const double tolerance = dtype == DType::bf16 ? 0.03 : 1e-5;
    expect_near(here.values, there.values, tolerance);
    // Logits and their gradient.
    EXPECT_EQ(here.loss_steps, (std::vector<int64_t>{step, step}));
    EXPECT_EQ(std::ranges::count(here.product_steps, step), 3) << "products of the head";
    // The same kernels over packed rows, which lanes share out otherwise.
    const Trained packed = train(kCuda, vocabulary, dtype, false);
    EXPECT_EQ(packed.loss_steps, (std::vector<int64_t>{vocabulary, vocabulary}));
    // A sum that is cut is rounded once more.
    const double apart = dtype == DType::f32 ? 1e-6 : vocabulary > 512 ? 0.008 : 0.005;
    expect_near(here.values, packed.values, apart);
  }
}

struct Classified {
  Lists values;
  std::vector<int64_t> linear_steps;
};

Classified classify(Device where, DType dtype, int64_t classes) {
  constexpr int64_t kRows = 7, kWidth = 16;
  set_default_device(where);
  const Tensor x = waves({kRows, kWidth}, 0.7f, dtype), w = waves({kWidth, classes}, 0.3f, dtype);
  const Tensor bias = waves({classes}, 0.9f, dtype);
  const Tensor targets = tensor(tokens(kRows, 13, classes), {kRows}).eval();
  auto step = compile([&] {
    const Tensor loss = cross_entropy(matmul(x, w) + bias, targets);
    return std::vector<Tensor>{loss, grad(loss, {x})[0], grad(loss, {w})[0]};
  });
  const Lists values = values_of(step());
  return {values, steps_of(step.program(), "linear", classes)};
}

// A bias, added by the library, and by a kernel of our own where the library refuses: there of
// another number of classes, because algorithms that were found are kept.
TEST_F(CudaRowsTest, AHeadWithABias) {
  for (const auto& [classes, dtype, step, refuses] :
       {std::tuple(91, DType::bf16, 96, false), std::tuple(91, DType::f32, 92, false),
        std::tuple(99, DType::bf16, 104, true), std::tuple(99, DType::f32, 100, true)}) {
    SCOPED_TRACE(cat(classes, " ", name(dtype)));
    if (refuses) tell(STAND_IN_PRODUCTS, "stand_in_refuse_epilogues", true);
    const Classified here = classify(kCuda, dtype, classes);
    if (refuses) tell(STAND_IN_PRODUCTS, "stand_in_refuse_epilogues", false);
    expect_near(here.values, classify(DeviceKind::cpu, dtype, classes).values,
                dtype == DType::bf16 ? 0.03 : 1e-5);
    EXPECT_EQ(std::ranges::count(here.linear_steps, step), 1) << "the result";
  }
}

TEST_F(CudaRowsTest, ALossTakesRowsThatAreEquallyFarApart) {
  KernelCall call;
  call.kernel = "cross_entropy";
  const View rows{{2, 3, 65}, {390, 65, 1}, 0}, one = contiguous_view({2, 3, 1});
  call.operands = {{DType::bf16, rows},
                   {DType::i64, one},
                   {DType::f32, one},
                   {DType::f32, one},
                   {DType::bf16, contiguous_view(rows.shape)}};
  call.outputs = 2;
  EXPECT_EQ(error_text([&] { backend(kCuda).compile(call); }),
            "cross_entropy: expected rows that lie equally far apart, got strides (390, 65, 1) for "
            "shape (2, 3, 65)");
}

}  // namespace
}  // namespace tessera::test
