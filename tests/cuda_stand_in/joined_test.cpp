// Joined kernels of an optimiser's step: how many launches it takes, and that joining changes no
// bit of what it gives.
#include <cmath>

#include "cuda_stand_in/stand_in_test.h"
#include "tessera/runtime/counters.h"
#include "tessera/tensor/eval.h"
#include "tessera/tessera.h"

namespace tessera::test {
namespace {

class JoinedKernels : public OnStandIn<> {
 protected:
  void SetUp() override {
    OnStandIn<>::SetUp();
    before_ = compile_options();
  }
  void TearDown() override {
    set_compile_options(before_);
    OnStandIn<>::TearDown();
  }

 private:
  CompileOptions before_;
};

constexpr int kTensors = 20;

// From 2 elements up to some that several groups share, most lengths odd.
Shape shape_of(int i) {
  if (i % 5 == 4) return {37 + i, 129};
  return {2 + i * i * i};
}

// Numbers of the host: made on the device, they would take a kernel for each shape.
Tensor waves(const Shape& shape, float phase) {
  std::vector<float> values(size_t(numel(shape)));
  for (size_t i = 0; i < values.size(); ++i) values[i] = std::sin(float(i) * 0.37f + phase);
  return tensor(values, shape);
}

struct Steps {
  std::vector<std::vector<float>> values;
  float norm = 0;
  Report report;
  std::string text;      // the program
  int64_t launches = 0;  // of one more step
};

// Four steps of AdamW with clipping over tensors whose gradients are computed, too.
Steps run_steps(bool joins, DType dtype) {
  CompileOptions options;
  options.horizontal = joins;
  set_compile_options(options);
  std::vector<Var> vars;
  for (int i = 0; i < kTensors; ++i) {
    vars.emplace_back(cast(waves(shape_of(i), float(i)), dtype), cat("p", i));
  }
  AdamW adamw(vars, {.lr = 0.01,
                     .weight_decay = 0.1,
                     .f32_masters = true,
                     .groups = {{.pattern = "p1*", .weight_decay = 0.0}}});
  auto step = compile([&](const Tensor& x) {
    Tensor loss = x;
    for (const Var& var : vars) {
      const Tensor wide = cast(var, DType::f32);
      loss = loss + sum(wide * wide * wide);
    }
    backward(loss);
    const Tensor norm = clip_grad_norm(vars, 1.0);
    adamw.step();
    return norm;
  });
  Steps run;
  for (int i = 0; i < 4; ++i) run.norm = step(scalar(0.0f)).to_vector<float>()[0];
  run.report = step.program().report;
  run.text = to_string(step.program());
  const int64_t before = counters().snapshot().launches;
  step(scalar(0.0f));
  run.launches = counters().snapshot().launches - before;
  for (const Var& var : vars) run.values.push_back(cast(var, DType::f32).to_vector<float>());
  return run;
}

TEST_F(JoinedKernels, AStepOfAdamWIsAFewLaunches) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const Steps joined = run_steps(true, dtype), alone = run_steps(false, dtype);
    EXPECT_GE(alone.report.kernels, 2 * kTensors);
    EXPECT_EQ(joined.report.kernels, 8) << joined.text;
    EXPECT_EQ(joined.launches, 1);  // recorded
    EXPECT_EQ(joined.norm, alone.norm);
    EXPECT_EQ(joined.report.donated, alone.report.donated);
    EXPECT_EQ(joined.report.bytes_moved, alone.report.bytes_moved);
    for (int i = 0; i < kTensors; ++i) {
      EXPECT_EQ(joined.values[size_t(i)], alone.values[size_t(i)]) << i;
    }
  }
}

// The norm of as many gradients as GPT-2 has: their sums, what folds the parts of those, and all
// that is done with 148 numbers.
TEST_F(JoinedKernels, ANormOfManyGradientsIsThreeLaunches) {
  std::vector<Var> vars;
  std::vector<Tensor> grads;
  double expected = 0;
  for (int i = 0; i < 148; ++i) {
    const Shape shape = i == 0 ? Shape{300, 64} : i % 3 == 0 ? Shape{8 + i, 24} : Shape{24 + i % 2};
    vars.emplace_back(zeros(shape), cat("p", i));
    grads.push_back(waves(shape, float(i)).eval());
    for (const float g : grads.back().to_vector<float>()) expected += double(g) * double(g);
  }
  auto program = compile([&] {
    for (size_t i = 0; i < vars.size(); ++i) vars[i].set_grad(grads[i]);
    const Tensor norm = clip_grad_norm(vars, 1.0);
    for (const Var& var : vars) var.set_grad({});
    return norm;
  });
  EXPECT_NEAR(program().to_vector<float>()[0], std::sqrt(expected), 1e-4 * std::sqrt(expected));
  EXPECT_EQ(program.program().report.kernels, 2) << to_string(program.program());
}

// What a launch is named after, and what it moves.
TEST_F(JoinedKernels, ProfilesNameThem) {
  std::vector<Tensor> inputs;
  for (int i = 0; i < 4; ++i) inputs.push_back(waves({1000 + i}, float(i)).eval());
  const auto program = compile([&] {
    std::vector<Tensor> results;
    for (const Tensor& x : inputs) results.push_back(tanh(x));
    return results;
  });
  program();
  const std::string text = to_string(program.program());
  EXPECT_EQ(text.find("#0 tanh × 4 (external0 f32(1000,) -> output0 f32(1000,))\n  and ("), 0u);
  EXPECT_EQ(program.program().instructions[0].bytes, 8 * (1000 + 1001 + 1002 + 1003));
}

}  // namespace
}  // namespace tessera::test
