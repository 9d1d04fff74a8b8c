// What stands around the optimiser's step: groups, masters, loss scaling, accumulation, averages.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "optim/problem.h"
#include "support/expect_error.h"

namespace tessera {
namespace {

std::vector<float> floats(const Tensor& x) { return cast(x, DType::f32).to_vector<float>(); }

// Everything that changes from step to step, in one compiled function.
TEST(TrainingStep, CompilesOnce) {
  const Random random(3);
  const Dropout dropout("dropout", 0.25, random);
  const Linear fc("fc", 8, 4, random);
  AdamW optimizer(fc.named_parameters(),
                  {.skip_nonfinite = true, .groups = {{.pattern = "bias", .weight_decay = 0}}});
  const LossScaler scaler({.initial = 256, .growth_interval = 20});
  const Ema ema(fc.parameters(), 0.9);
  const auto step = compile([&](const Tensor& x) {
    const Tensor y = fc(dropout(x));
    scaler.backward(mean(y * y));
    scaler.unscale(optimizer);
    clip_grad_norm(optimizer.parameters(), 1);
    clip_grad_value(optimizer.parameters(), 0.5);
    optimizer.step();
    ema.update();
  });
  const Schedule schedule = warmup_cosine({.peak = 1e-2, .warmup = 20, .total = 200});
  Plateau plateau({.lr = 1, .factor = 0.5, .patience = 10});
  const Random data(4);
  for (int64_t k = 0; k < 200; ++k) {
    optimizer.set_lr(schedule(k) * plateau(1));
    const Tensor x = data.normal({16, 8});
    step(k % 50 == 49 ? x / 0 : x);
  }
  EXPECT_EQ(step.stats().compilations, 1);
  EXPECT_EQ(step.stats().replays, 199);
  EXPECT_EQ(optimizer.skipped().value().item(), 4);
  EXPECT_EQ(optimizer.steps().value().item(), 196);
  // Of 49 good steps between two bad ones, the scale doubles twice.
  EXPECT_EQ(scaler.scale().value().item(), 256 * std::pow(4, 4) / std::pow(2, 4));
  EXPECT_TRUE(std::isfinite(sum(fc.weight()).item()));
}

// Groups ----------------------------------------------------------------------------------------

TEST(ParameterGroups, TheFirstThatMatchesCounts) {
  const Var a(tensor(std::vector<double>{1}), "a"), b(tensor(std::vector<double>{1}), "b");
  SGD optimizer({a, b}, {.lr = 0.1,
                         .weight_decay = 0.5,
                         .groups = {{.pattern = "b", .lr_scale = 0}, {.pattern = "*"}}});
  backward(sum(a.value()) + sum(b.value()));
  optimizer.step();
  EXPECT_DOUBLE_EQ(a.value().item(), 1 - 0.1 * 1.5);
  EXPECT_EQ(b.value().item(), 1);
}

TEST(ParameterGroups, ErrorsNameWhatIsWrong) {
  const Problem problem;
  const auto make = [&](const ParameterGroup& group) {
    return error_text([&] { Adam(problem.parameters(), {.groups = {group}}); });
  };
  EXPECT_EQ(make({.pattern = "*.bias"}), "adam: no parameter matches the group '*.bias'");
  EXPECT_EQ(make({.pattern = "*", .lr_scale = -1}),
            "adam: expected a finite lr_scale of at least 0, got -1");
  EXPECT_EQ(make({.pattern = "*", .weight_decay = -1}),
            "adam: expected a weight decay of at least 0, got -1");
}

TEST(OptimizerState, HasNames) {
  const Var w(cast(ones({2}), DType::bf16), "w");
  const RMSprop optimizer(std::vector<NamedVar>{{"block.w", w}},
                          {.momentum = 0.5, .centered = true});
  std::vector<std::string> names;
  for (const NamedVar& named : optimizer.named_state()) names.push_back(named.name);
  const std::vector<std::string> expected = {
      "lr", "steps", "skipped", "block.w.v", "block.w.mean", "block.w.momentum", "block.w.master"};
  EXPECT_EQ(names, expected);
}

// Masters ---------------------------------------------------------------------------------------

// Steps of 1/1024 at 1, where neighbours in bf16 are 1/256 apart below.
class Masters : public ::testing::TestWithParam<bool> {
 protected:
  const Var w_{cast(ones({1}), DType::bf16), "w"};

  void take_steps(SGD& optimizer, int n) const {
    const StepFunction step = make_step(GetParam(), [&](const Tensor&) {
      backward(sum(cast(w_, DType::f32)));
      optimizer.step();
    });
    for (int i = 0; i < n; ++i) step(1);
  }
};
INSTANTIATE_TEST_SUITE_P(Styles, Masters, ::testing::Bool());

TEST_P(Masters, SmallStepsAddUp) {
  SGD optimizer({w_}, {.lr = 1.0 / 1024});
  take_steps(optimizer, 8);
  EXPECT_EQ(floats(w_)[0], 1 - 8.0f / 1024);
  EXPECT_EQ(floats(optimizer.state()[0])[0], 1 - 8.0f / 1024);
}

TEST_P(Masters, WithoutThemSmallStepsAreLost) {
  SGD optimizer({w_}, {.lr = 1.0 / 1024, .f32_masters = false});
  EXPECT_TRUE(optimizer.state().empty());
  take_steps(optimizer, 8);
  EXPECT_EQ(floats(w_)[0], 1);
}

TEST_P(Masters, AValueFromOutsideCounts) {
  SGD optimizer({w_}, {.lr = 1.0 / 1024});
  take_steps(optimizer, 1);
  w_.set(2);
  take_steps(optimizer, 4);
  EXPECT_EQ(floats(optimizer.state()[0])[0], 2 - 4.0f / 1024);
}

// Loss scaling ----------------------------------------------------------------------------------

// A gradient of 2^-27 is 0 in f16; scaled by 2^16 it is not.
TEST(LossScaling, KeepsSmallGradientsOfF16) {
  const double tiny = std::ldexp(1.0, -27);
  const Var w(ones({4}), "w");
  const auto loss = [&] { return sum(cast(cast(w, DType::f16) * 1.0, DType::f32)) * tiny; };
  backward(loss());
  EXPECT_EQ(floats(w.grad()), std::vector<float>(4, 0));
  w.set_grad({});
  SGD optimizer({w}, {.lr = 1, .skip_nonfinite = true});
  const LossScaler scaler;
  scaler.backward(loss());
  scaler.unscale(optimizer);
  EXPECT_EQ(floats(w.grad()), std::vector<float>(4, float(tiny)));
}

// The same where the parameters are f16: their masters get what f16 cannot hold.
TEST(LossScaling, KeepsSmallGradientsOfF16Parameters) {
  const double tiny = std::ldexp(1.0, -27);
  const Var w(ones({4}, DType::f16), "w");
  SGD optimizer({w}, {.lr = 8, .skip_nonfinite = true});
  const LossScaler scaler;
  scaler.backward(sum(cast(w, DType::f32)) * tiny);
  EXPECT_EQ(w.grad().dtype(), DType::f16);
  scaler.unscale(optimizer);
  EXPECT_EQ(floats(w.grad()), std::vector<float>(4, float(tiny)));
  optimizer.step();
  EXPECT_EQ(floats(optimizer.state().back()), std::vector<float>(4, float(1 - 8 * tiny)));
  EXPECT_EQ(w.value().to(DType::f32).to_vector<float>(), std::vector<float>(4, 1));
}

TEST(LossScaling, SkipsWhatOverflowsF16) {
  const Var w(ones({1}, DType::f16), "w");
  SGD optimizer({w}, {.lr = 1, .skip_nonfinite = true});
  const LossScaler scaler({.initial = 65536});
  const auto step = [&] {
    scaler.backward(sum(cast(w, DType::f32)) * 0.5);  // 32768, then more than f16 has, then 32768
    scaler.unscale(optimizer);
    optimizer.step();
    return w.value().item();
  };
  EXPECT_EQ(step(), 0.5);
  scaler.scale().set(262144);
  EXPECT_EQ(step(), 0.5);
  EXPECT_EQ(optimizer.skipped().value().item(), 1);
  EXPECT_EQ(scaler.scale().value().item(), 131072);
  EXPECT_EQ(step(), 0.5);
  EXPECT_EQ(step(), 0);
  EXPECT_EQ(optimizer.skipped().value().item(), 2);
}

TEST(LossScaling, LossAndGradientsAreReadableInThePlainStyle) {
  const Var w(ones({1}), "w");
  SGD optimizer({w}, {.lr = 0.5, .skip_nonfinite = true});
  const LossScaler scaler({.initial = 8, .growth_interval = 1});
  const Tensor loss = sum(3 * w.value());
  scaler.backward(loss);
  scaler.unscale(optimizer);
  EXPECT_EQ(scaler.scale().value().item(), 16);  // moves the scale, and computes the gradient
  EXPECT_EQ(w.grad().item(), 3);
  optimizer.step();
  EXPECT_EQ(loss.item(), 3);
  EXPECT_EQ(w.value().item(), -0.5);
}

TEST(LossScaling, DoesNotGrowBeyondF32) {
  const Var w(ones({1}), "w");
  SGD optimizer({w}, {.lr = 0, .skip_nonfinite = true});
  const double high = std::ldexp(1.0, 127);
  const LossScaler scaler({.initial = high, .growth_interval = 1});
  scaler.backward(sum(w.value()) * std::ldexp(1.0, -20));
  scaler.unscale(optimizer);
  optimizer.step();
  EXPECT_EQ(scaler.scale().value().item(), high);
}

TEST(LossScaling, ErrorsNameWhatIsWrong) {
  EXPECT_EQ(error_text([] { LossScaler({.initial = 0}); }),
            "LossScaler: expected a finite scale above 0, got 0");
  EXPECT_EQ(error_text([] { LossScaler({.growth = 0.5}); }),
            "LossScaler: expected a growth of at least 1 and a backoff between 0 and 1, got 0.5 "
            "and 0.5");
  EXPECT_EQ(error_text([] { LossScaler({.growth_interval = 0}); }),
            "LossScaler: expected a growth interval of at least 1 step, got 0");
  const LossScaler scaler;
  const Problem problem;
  EXPECT_EQ(error_text([&] { scaler.unscale(SGD(problem.parameters(), {})); }),
            "LossScaler: expected an optimiser with skip_nonfinite, got one that takes every step");
}

// Accumulation ----------------------------------------------------------------------------------

TEST(Accumulation, IsTheMeanInThePlainStyle) {
  const Var w(cast(zeros({1}), DType::bf16), "w"), unused(ones({1}), "unused");
  GradientAccumulator accumulator({w, unused, w});
  ASSERT_EQ(accumulator.sums().size(), 2u);
  EXPECT_EQ(accumulator.sums()[0].dtype(), DType::f32);
  SGD optimizer({w, unused}, {.lr = 1, .weight_decay = 0.5});
  for (const double factor : {1.0, 1.0 / 512, 5.0}) {  // bf16 would lose the second one
    backward(sum(factor * cast(w, DType::f32)));
    accumulator.add();
    EXPECT_FALSE(w.grad().defined());
  }
  EXPECT_EQ(floats(accumulator.sums()[0])[0], 6 + 1.0f / 512);
  accumulator.take();
  EXPECT_EQ(floats(accumulator.sums()[0])[0], 0);  // a read before the step
  EXPECT_FALSE(unused.grad().defined());
  optimizer.step();
  EXPECT_EQ(floats(w)[0], -2);
  EXPECT_EQ(floats(unused)[0], 1);
}

TEST(Accumulation, ErrorsNameWhatIsWrong) {
  const Problem problem;
  GradientAccumulator accumulator(problem.parameters());
  EXPECT_EQ(error_text([&] { accumulator.take(); }),
            "GradientAccumulator: nothing has been added: call add() before take()");
  EXPECT_EQ(error_text([&] { accumulator.add(); }),
            "GradientAccumulator: no parameter has a gradient: call backward(loss) first");
}

// Averages --------------------------------------------------------------------------------------

TEST(Averages, AreAppliedAndTakenBack) {
  const Var w(cast(ones({2}), DType::bf16), "w");
  Ema ema({w, w}, 0.5);
  ASSERT_EQ(ema.averages().size(), 1u);
  EXPECT_EQ(ema.averages()[0].dtype(), DType::f32);
  EXPECT_EQ(ema.named_state()[0].name, "w.average");
  w.set(2);
  ema.update();
  ema.apply();
  EXPECT_EQ(floats(w), std::vector<float>(2, 1.5f));
  ema.restore();
  EXPECT_EQ(floats(w), std::vector<float>(2, 2.0f));
  EXPECT_EQ(floats(ema.averages()[0]), std::vector<float>(2, 1.5f));
}

TEST(Averages, ErrorsNameWhatIsWrong) {
  const Problem problem;
  EXPECT_EQ(error_text([&] { Ema(problem.parameters(), 1); }),
            "Ema: expected a decay from 0 to below 1, got 1");
  Ema ema(problem.parameters());
  EXPECT_EQ(error_text([&] { ema.restore(); }), "Ema: nothing to restore: call apply() first");
  ema.apply();
  EXPECT_EQ(error_text([&] { ema.apply(); }),
            "Ema: the averages are applied already: call restore() first");
  EXPECT_EQ(error_text([&] { ema.update(); }),
            "Ema: the averages are applied: call restore() before update()");
}

// Others ----------------------------------------------------------------------------------------

TEST(ClipGradValue, CutsEveryElement) {
  const Var w(zeros({4}), "w");
  const float nan = std::nanf("");
  backward(sum(w.value() * tensor(std::vector<float>{-3, 0.25, 7, nan})));
  const std::vector<Var> vars = {w, w};
  clip_grad_value(vars, 0.5);
  const std::vector<float> grad = floats(w.grad());
  EXPECT_EQ(std::vector<float>(grad.begin(), grad.end() - 1),
            std::vector<float>({-0.5, 0.25, 0.5}));
  EXPECT_TRUE(std::isnan(grad[3]));
  w.set_grad({});
  EXPECT_EQ(error_text([&] { clip_grad_value(vars, 0.5); }),
            "clip_grad_value: no parameter has a gradient: call backward(loss) first");
  EXPECT_EQ(error_text([&] { clip_grad_value(vars, 0); }),
            "clip_grad_value: expected a limit above 0, got 0");
}

TEST(RMSpropErrors, NameWhatIsWrong) {
  const Problem problem;
  const auto make = [&](const RMSpropOptions& options) {
    return error_text([&] { RMSprop(problem.parameters(), options); });
  };
  EXPECT_EQ(make({.alpha = 1}), "rmsprop: expected an alpha from 0 to below 1, got 1");
  EXPECT_EQ(make({.epsilon = 0}), "rmsprop: expected an epsilon above 0, got 0");
  EXPECT_EQ(make({.momentum = -1}), "rmsprop: expected a momentum from 0 to below 1, got -1");
}

}  // namespace
}  // namespace tessera
