// Ten steps of every optimiser, and every schedule, against PyTorch's numbers, which
// golden_steps.py has written: it has the problem and the configurations.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tessera/tessera.h"

namespace tessera {
namespace {

constexpr int64_t kSteps = 10, kScheduleSteps = 24;

const NamedTensors& golden() {
  static const NamedTensors tensors =
      load_safetensors(std::string(TESSERA_TEST_DIR) + "/data/steps.safetensors");
  return tensors;
}

std::vector<double> doubles(const Tensor& x) { return cast(x, DType::f64).to_vector<double>(); }

// |result - expected| <= tolerance · max(1, |expected|), element by element.
void expect_close(const Tensor& result, const Tensor& expected, double tolerance,
                  const std::string& what) {
  ASSERT_EQ(result.shape(), expected.shape()) << what;
  const std::vector<double> values = doubles(result), wanted = doubles(expected);
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_NEAR(values[i], wanted[i], tolerance * std::max(1.0, std::abs(wanted[i])))
        << what << ", element " << i;
  }
}

struct GoldenProblem {
  explicit GoldenProblem(DType dtype = DType::f64, DType data = DType::f64)
      : w(cast(golden().at("problem/w"), dtype), "w"),
        b(cast(golden().at("problem/b"), dtype), "b"),
        x(cast(golden().at("problem/x"), data)),
        y(cast(golden().at("problem/y"), data)) {}

  std::vector<NamedVar> parameters() const { return {{"fc.weight", w}, {"fc.bias", b}}; }
  std::vector<Var> vars() const { return {w, b}; }

  Tensor loss(const Tensor& inputs, const Tensor& targets) const {
    const Tensor product = matmul(inputs, transpose(cast(w, inputs.dtype())));
    const Tensor error = tanh(product + cast(b, inputs.dtype())) - targets;
    return mean(error * error) * 5;
  }
  Tensor loss() const { return loss(x, y); }

  void expect_values(const std::string& name, int64_t k, double tolerance) const {
    const std::string at = cat(name, " after step ", k);
    expect_close(w, golden().at(name + "/w")[{k}], tolerance, at + ", w");
    expect_close(b, golden().at(name + "/b")[{k}], tolerance, at + ", b");
  }

  Var w, b;
  Tensor x, y;
};

// Ten steps of `body` with falling rates, plain or compiled; a compiled one compiles once.
template <class Body, class After>
void run_steps(bool compiled, const Optimizer& optimizer, double lr, const Body& body,
               const After& after) {
  const auto step = compile(std::function<void()>(body));
  for (int64_t k = 0; k < kSteps; ++k) {
    optimizer.set_lr(lr * (1 - double(k) / 20));
    if (compiled) {
      step();
    } else {
      body();
    }
    after(k);
  }
  if (compiled) EXPECT_EQ(step.stats().compilations, 1);
}

using Make = std::function<std::unique_ptr<Optimizer>(const Parameters&)>;

struct Configuration {
  const char* name;
  double lr;
  Make make;
};

template <class O, class Options>
Configuration configuration(const char* name, const Options& options) {
  return {name, options.lr,
          [=](const Parameters& parameters) { return std::make_unique<O>(parameters, options); }};
}

const ParameterGroup kBias = {.pattern = "*.bias", .lr_scale = 0.5, .weight_decay = 0};

std::vector<Configuration> configurations() {
  const auto sgd = configuration<SGD, SGDOptions>;
  const auto adam = configuration<Adam, AdamOptions>;
  const auto adamw = configuration<AdamW, AdamWOptions>;
  const auto rmsprop = configuration<RMSprop, RMSpropOptions>;
  return {
      sgd("sgd", {.lr = 0.2}),
      sgd("sgd_decay", {.lr = 0.2, .weight_decay = 0.1}),
      sgd("sgd_momentum", {.lr = 0.1, .momentum = 0.9}),
      sgd("sgd_dampening", {.lr = 0.1, .momentum = 0.8, .dampening = 0.3, .weight_decay = 0.05}),
      sgd("sgd_nesterov", {.lr = 0.1, .momentum = 0.9, .weight_decay = 0.01, .nesterov = true}),
      adam("adam", {.lr = 0.05}),
      adam("adam_decay",
           {.lr = 0.05, .beta1 = 0.8, .beta2 = 0.95, .epsilon = 1e-6, .weight_decay = 0.1}),
      adamw("adamw", {.lr = 0.05}),
      adamw("adamw_betas",
            {.lr = 0.05, .beta1 = 0.8, .beta2 = 0.95, .epsilon = 1e-6, .weight_decay = 0.2}),
      rmsprop("rmsprop", {.lr = 0.02}),
      rmsprop("rmsprop_decay", {.lr = 0.02, .alpha = 0.9, .epsilon = 1e-6, .weight_decay = 0.1}),
      rmsprop("rmsprop_momentum", {.lr = 0.01, .momentum = 0.9}),
      rmsprop("rmsprop_centered", {.lr = 0.02, .centered = true}),
      rmsprop("rmsprop_all",
              {.lr = 0.01, .alpha = 0.9, .momentum = 0.5, .weight_decay = 0.05, .centered = true}),
      sgd("groups_sgd", {.lr = 0.05, .momentum = 0.5, .weight_decay = 0.1, .groups = {kBias}}),
      adam("groups_adam", {.lr = 0.05, .weight_decay = 0.1, .groups = {kBias}}),
      adamw("groups_adamw", {.lr = 0.05, .weight_decay = 0.1, .groups = {kBias}}),
      rmsprop("groups_rmsprop", {.lr = 0.05, .weight_decay = 0.1, .groups = {kBias}}),
  };
}

// In f64, where the only differences are orders of rounding; in f32 ten steps of them.
struct Precision {
  DType dtype;
  double tolerance;
};
const Precision kPrecisions[] = {{DType::f64, 1e-12}, {DType::f32, 1e-5}};

class GoldenSteps : public ::testing::TestWithParam<std::tuple<Configuration, Precision, bool>> {};

TEST_P(GoldenSteps, ArePyTorchs) {
  const auto& [configuration, precision, compiled] = GetParam();
  const GoldenProblem problem(precision.dtype, precision.dtype);
  const auto optimizer = configuration.make(problem.parameters());
  const auto body = [&] {
    backward(problem.loss());
    optimizer->step();
  };
  run_steps(compiled, *optimizer, configuration.lr, body,
            [&](int64_t k) { problem.expect_values(configuration.name, k, precision.tolerance); });
}

INSTANTIATE_TEST_SUITE_P(All, GoldenSteps,
                         ::testing::Combine(::testing::ValuesIn(configurations()),
                                            ::testing::ValuesIn(kPrecisions), ::testing::Bool()),
                         [](const auto& test) {
                           return cat(std::get<0>(test.param).name, "_",
                                      std::get<1>(test.param).dtype,
                                      std::get<2>(test.param) ? "_compiled" : "_plain_style");
                         });

class GoldenStyle : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Styles, GoldenStyle, ::testing::Bool());

constexpr AdamWOptions kAdamW() { return {.lr = 0.05, .weight_decay = 0.1}; }

// The norm is computed in f32, whatever the gradients are.
TEST_P(GoldenStyle, ClippedByNorm) {
  const GoldenProblem problem;
  AdamW optimizer(problem.parameters(), kAdamW());
  const Var seen(zeros({}), "seen", false);
  const auto body = [&] {
    backward(problem.loss());
    seen.assign(clip_grad_norm(problem.vars(), 0.5));
    optimizer.step();
  };
  run_steps(GetParam(), optimizer, 0.05, body, [&](int64_t k) {
    problem.expect_values("clipped_norm", k, 1e-6);
    expect_close(seen, golden().at("clipped_norm/norm")[{k}], 1e-6, "norm");
  });
}

TEST_P(GoldenStyle, ClippedByValue) {
  const GoldenProblem problem;
  SGD optimizer(problem.parameters(), {.lr = 0.1, .momentum = 0.9});
  const auto body = [&] {
    backward(problem.loss());
    clip_grad_value(problem.vars(), 0.25);
    optimizer.step();
  };
  run_steps(GetParam(), optimizer, 0.1, body,
            [&](int64_t k) { problem.expect_values("clipped_value", k, 1e-12); });
}

TEST_P(GoldenStyle, Averaged) {
  const GoldenProblem problem;
  AdamW optimizer(problem.parameters(), kAdamW());
  const Ema ema(problem.parameters(), 0.75);
  const auto body = [&] {
    backward(problem.loss());
    optimizer.step();
    ema.update();
  };
  run_steps(GetParam(), optimizer, 0.05, body, [&](int64_t k) {
    problem.expect_values("averaged", k, 1e-12);
    expect_close(ema.averages()[0], golden().at("averaged/average_w")[{k}], 1e-12, "w");
    expect_close(ema.averages()[1], golden().at("averaged/average_b")[{k}], 1e-12, "b");
  });
}

// Micro-batches are one compiled function, called twice per step, and the step is another one.
TEST(GoldenTraining, AccumulatedInTwoFunctions) {
  const GoldenProblem problem;
  AdamW optimizer(problem.parameters(), kAdamW());
  GradientAccumulator accumulator(problem.vars());
  const auto micro = compile([&](const Tensor& x, const Tensor& y) {
    backward(problem.loss(x, y));
    accumulator.add();
  });
  const auto step = compile([&] {
    accumulator.take();
    optimizer.step();
  });
  for (int64_t k = 0; k < kSteps; ++k) {
    optimizer.set_lr(0.05 * (1 - double(k) / 20));
    for (const int64_t half : {0, 1}) {
      micro(slice(problem.x, 0, 4 * half, 4 * half + 4),
            slice(problem.y, 0, 4 * half, 4 * half + 4));
    }
    EXPECT_EQ(accumulator.count().value().item(), 2);
    step();
    EXPECT_EQ(accumulator.count().value().item(), 0);
    problem.expect_values("accumulated", k, 1e-12);
  }
  EXPECT_EQ(micro.stats().compilations, 1);
  EXPECT_EQ(step.stats().compilations, 1);
}

TEST_P(GoldenStyle, LossScaling) {
  const GoldenProblem problem(DType::f32, DType::f32);
  AdamW optimizer(problem.parameters(), {.lr = 0.05, .weight_decay = 0.1, .skip_nonfinite = true});
  const LossScaler scaler({.initial = 1024, .growth_interval = 2});
  const auto body = [&](const Tensor& factor) {
    scaler.backward(problem.loss() * factor);
    scaler.unscale(optimizer);
    optimizer.step();
  };
  const auto step = compile(body);
  for (int64_t k = 0; k < kSteps; ++k) {
    const bool infinite = k == 2 || k == 6 || k == 7;
    const Tensor factor = scalar(infinite ? std::numeric_limits<float>::infinity() : 1.0f);
    if (GetParam()) {
      step(factor);
    } else {
      body(factor);
    }
    problem.expect_values("loss_scaling", k, 1e-5);
    expect_close(scaler.scale(), golden().at("loss_scaling/scale")[{k}], 0, cat("scale ", k));
  }
  EXPECT_EQ(optimizer.skipped().value().item(), 3);
  if (GetParam()) EXPECT_EQ(step.stats().compilations, 1);
}

// A rate of 1e-3 moves bf16 values near 1 by less than half their distance: without masters most of
// these parameters would stay where they are.
TEST_P(GoldenStyle, Masters) {
  const GoldenProblem problem(DType::bf16, DType::f32);
  AdamW optimizer(problem.parameters(), {.lr = 1e-3, .weight_decay = 0.1});
  ASSERT_EQ(optimizer.state().size(), 6u);
  const auto body = [&] {
    backward(problem.loss());
    optimizer.step();
  };
  const auto step = compile(body);
  for (int64_t k = 0; k < kSteps; ++k) {
    if (GetParam()) {
      step();
    } else {
      body();
    }
    const Var &w = optimizer.state()[4], &b = optimizer.state()[5];
    expect_close(w, golden().at("masters/w")[{k}], 2e-6, cat("w after step ", k));
    expect_close(b, golden().at("masters/b")[{k}], 2e-6, cat("b after step ", k));
    EXPECT_EQ(doubles(problem.w), doubles(cast(w, DType::bf16)));
    EXPECT_EQ(doubles(problem.b), doubles(cast(b, DType::bf16)));
  }
}

// Schedules -------------------------------------------------------------------------------------

struct ScheduleCase {
  const char* name;
  Schedule schedule;
};

std::vector<ScheduleCase> schedule_cases() {
  return {
      {"constant", constant_lr(0.1)},
      {"linear", linear_lr(0.1, 0.025, 15)},
      {"step", step_lr(0.1, 7, 0.5)},
      {"exponential", exponential_lr(0.1, 0.9)},
      {"cosine", cosine_lr({.peak = 0.1, .total = kScheduleSteps, .floor = 0.02})},
      {"one_cycle", one_cycle_lr({.peak = 0.1, .total = kScheduleSteps + 1})},
      {"one_cycle_linear", one_cycle_lr({.peak = 0.1,
                                         .total = kScheduleSteps + 1,
                                         .rise = 0.5,
                                         .start_divisor = 10,
                                         .end_divisor = 100,
                                         .linear = true})},
      {"warm_step", warmup(6, step_lr(0.1, 7, 0.5))},
      {"warm_exponential", warmup(4, exponential_lr(0.1, 0.9))},
  };
}

TEST(GoldenSchedules, ArePyTorchs) {
  for (const auto& [name, schedule] : schedule_cases()) {
    const std::vector<double> expected = doubles(golden().at(cat("schedule/", name)));
    ASSERT_EQ(expected.size(), size_t(kScheduleSteps));
    for (size_t k = 0; k < expected.size(); ++k) {
      EXPECT_NEAR(schedule(int64_t(k)), expected[k], 1e-14) << name << " at step " << k;
    }
  }
}

TEST(GoldenSchedules, PlateausArePyTorchs) {
  const double losses[kScheduleSteps] = {5, 4,   4.5, 4.2, 4.1, 3.9999,       3,   3,   3,   3, 3,
                                         3, 3.5, 2,   2.1, 2.2, std::nan(""), 2.3, 2.4, 2.5, 1, 1,
                                         1, 1};
  Plateau plain({.lr = 0.1, .factor = 0.5, .patience = 2});
  Plateau rising({.lr = 0.1,
                  .factor = 0.25,
                  .patience = 1,
                  .threshold = 0.01,
                  .cooldown = 2,
                  .floor = 0.005,
                  .maximize = true});
  const std::vector<double> expected = doubles(golden().at("schedule/plateau"));
  const std::vector<double> expected_rising = doubles(golden().at("schedule/plateau_cooldown"));
  for (size_t k = 0; k < size_t(kScheduleSteps); ++k) {
    EXPECT_NEAR(plain(losses[k]), expected[k], 1e-15) << "at " << k;
    EXPECT_NEAR(rising(losses[k]), expected_rising[k], 1e-15) << "at " << k;
  }
}

}  // namespace
}  // namespace tessera
