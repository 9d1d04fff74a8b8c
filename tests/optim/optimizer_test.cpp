#include "tessera/optim/optimizer.h"

#include <gtest/gtest.h>

#include <limits>

#include "optim/problem.h"
#include "support/expect_error.h"

namespace tessera {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

class OptimizerStyle : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Styles, OptimizerStyle, ::testing::Bool());

TEST_P(OptimizerStyle, SkipsAStepWithNonFiniteGradients) {
  const Problem skipping, plain;
  AdamW optimizer(skipping.parameters(), {.lr = 0.1, .skip_nonfinite = true});
  AdamW reference(plain.parameters(), {.lr = 0.1});
  const StepFunction step = make_step(GetParam(), [&](const Tensor& factor) {
    backward(skipping.loss(factor));
    optimizer.step();
  });
  const StepFunction reference_step = make_step(GetParam(), [&](const Tensor& factor) {
    backward(plain.loss(factor));
    reference.step();
  });
  for (const double factor : {1.0, kInfinity, 2.0, std::nan(""), 0.5}) {
    const std::vector<double> before = skipping.values();
    step(factor);
    if (std::isfinite(factor)) {
      reference_step(factor);
    } else {
      EXPECT_EQ(skipping.values(), before);
    }
    const std::vector<double> here = skipping.values(), there = plain.values();
    // Two kernels: a GPU's compiler may contract other products into multiply-adds in each.
    const double rounding = default_device().kind == DeviceKind::cpu ? 0 : 1e-14;
    for (size_t i = 0; i < here.size(); ++i) {
      EXPECT_NEAR(here[i], there[i], rounding) << "after a factor of " << factor;
    }
  }
  EXPECT_EQ(optimizer.skipped().value().item(), 2);
  EXPECT_EQ(optimizer.steps().value().item(), 3);
}

TEST_P(OptimizerStyle, OneBadElementSkipsEveryParameter) {
  const Var good(ones({3}), "good"), bad(ones({3}), "bad");
  SGD optimizer({good, bad}, {.lr = 0.5, .skip_nonfinite = true});
  const Tensor weights = tensor(std::vector<float>{1, std::numeric_limits<float>::infinity(), 1});
  make_step(GetParam(), [&](const Tensor&) {
    backward(sum(good) + sum(weights * bad));
    optimizer.step();
  })(1);
  EXPECT_EQ(good.value().to_vector<float>(), std::vector<float>({1, 1, 1}));
  EXPECT_EQ(bad.value().to_vector<float>(), std::vector<float>({1, 1, 1}));
  EXPECT_EQ(optimizer.skipped().value().item(), 1);
}

TEST_P(OptimizerStyle, WithoutTheOptionABadStepIsTaken) {
  const Problem problem;
  SGD optimizer(problem.parameters(), {.lr = 0.1});
  make_step(GetParam(), [&](const Tensor& factor) {
    backward(problem.loss(factor));
    optimizer.step();
  })(std::nan(""));
  EXPECT_TRUE(std::isnan(problem.values()[0]));
  EXPECT_EQ(optimizer.skipped().value().item(), 0);
}

// Both uses of a tied weight add to one gradient, and one step moves it once.
TEST_P(OptimizerStyle, TiedWeightsMoveOnce) {
  const Var w(tensor(std::vector<double>{2}), "w");
  const Var tied = w;
  SGD optimizer({w, tied}, {.lr = 0.1, .momentum = 0.5});
  EXPECT_EQ(optimizer.parameters().size(), 1u);
  EXPECT_EQ(optimizer.state().size(), 1u);
  make_step(GetParam(), [&](const Tensor&) {
    backward(sum(3.0 * w.value()) + sum(4.0 * tied.value()));
    optimizer.step();
  })(1);
  EXPECT_NEAR(w.value().item(), 2 - 0.1 * 7, 1e-12);
  EXPECT_EQ(tied.value().item(), w.value().item());
}

// An average of a parameter reads what the step has just assigned, and is never that storage.
TEST_P(OptimizerStyle, AverageOfAParameterStaysRight) {
  const Var w(tensor(std::vector<double>{1}), "w");
  const Var average(w.value(), "average", false);
  SGD optimizer({w}, {.lr = 0.25});
  const StepFunction step = make_step(GetParam(), [&](const Tensor& factor) {
    backward(sum(factor * w.value()));
    optimizer.step();
    average.assign(0.5 * average.value() + 0.5 * w.value());
  });
  double expected = 1, expected_average = 1;
  for (int i = 0; i < 10; ++i) {
    step(i);
    expected -= 0.25 * i;
    expected_average = 0.5 * expected_average + 0.5 * expected;
    EXPECT_EQ(w.value().item(), expected);
    EXPECT_EQ(average.value().item(), expected_average);
  }
}

TEST_P(OptimizerStyle, ParametersWithoutGradientStay) {
  const Var used(ones({2}), "used"), unused(ones({2}), "unused");
  AdamW optimizer({used, unused}, {.lr = 0.5, .weight_decay = 0.5});
  make_step(GetParam(), [&](const Tensor&) {
    backward(sum(used.value()));
    optimizer.step();
  })(1);
  EXPECT_NE(used.value().to_vector<float>()[0], 1);
  EXPECT_EQ(unused.value().to_vector<float>(), std::vector<float>({1, 1}));
}

TEST_P(OptimizerStyle, GradientsAddUpUntilTheStep) {
  const Var w(tensor(std::vector<double>{0}), "w");
  SGD optimizer({w}, {.lr = 1});
  const StepFunction step = make_step(GetParam(), [&](const Tensor& factor) {
    backward(sum(factor * w.value()));
    backward(sum(2.0 * w.value()));
    optimizer.step();
    EXPECT_FALSE(w.grad().defined());
  });
  step(1);
  EXPECT_EQ(w.value().item(), -3);
  step(5);
  EXPECT_EQ(w.value().item(), -10);
}

TEST(OptimizerTest, LossIsReadableAfterThePlainStep) {
  const Problem problem;
  SGD optimizer(problem.parameters(), {.lr = 0.1});
  const Tensor loss = problem.loss(scalar(1.0));
  const double before = problem.loss(scalar(1.0)).item();
  backward(loss);
  optimizer.step();
  EXPECT_EQ(loss.item(), before);
  EXPECT_LT(problem.loss(scalar(1.0)).item(), before);
}

TEST(OptimizerTest, ClearGradsForgetsThem) {
  const Problem problem;
  SGD optimizer(problem.parameters(), {.lr = 0.1});
  backward(problem.loss(scalar(1.0)));
  EXPECT_TRUE(problem.first.grad().defined());
  optimizer.clear_grads();
  EXPECT_FALSE(problem.first.grad().defined());
  flush();
}

TEST(OptimizerErrors, NameWhatIsWrong) {
  const Problem problem;
  SGD optimizer(problem.parameters(), {.lr = 0.1});
  EXPECT_EQ(error_text([&] { optimizer.step(); }),
            "sgd: no parameter has a gradient: call backward(loss) first");
  EXPECT_EQ(error_text([&] { optimizer.set_lr(kInfinity); }),
            "set_lr: expected a finite learning rate of at least 0, got inf");
  const Var fixed(ones({2}), "fixed", false);
  EXPECT_EQ(error_text([&] { AdamW({fixed}, {}); }),
            "adamw: expected trainable parameters, got 'fixed', which is not");
}

}  // namespace
}  // namespace tessera
