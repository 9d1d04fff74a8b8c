#include "tessera/optim/adam.h"

#include <gtest/gtest.h>

#include "optim/problem.h"
#include "support/expect_error.h"

namespace tessera {
namespace {

struct Moments {
  double m = 0, v = 0;
};

// The loop of PyTorch's documentation of AdamW, for one parameter; t counts from 1.
void reference_step(const AdamWOptions& o, int t, double g, double& p, Moments& s) {
  p -= o.lr * o.weight_decay * p;
  s.m = o.beta1 * s.m + (1 - o.beta1) * g;
  s.v = o.beta2 * s.v + (1 - o.beta2) * g * g;
  const double m_hat = s.m / (1 - std::pow(o.beta1, t));
  const double v_hat = s.v / (1 - std::pow(o.beta2, t));
  p -= o.lr * m_hat / (std::sqrt(v_hat) + o.epsilon);
}

class AdamWStyle : public ::testing::TestWithParam<bool> {};

TEST_P(AdamWStyle, FollowsTheFormulae) {
  const Problem problem;
  AdamWOptions options{.lr = 0.05, .beta2 = 0.99, .weight_decay = 0.1};
  AdamW optimizer(problem.parameters(), options);
  const StepFunction step = make_step(GetParam(), [&](const Tensor& factor) {
    backward(problem.loss(factor));
    optimizer.step();
  });
  std::vector<double> expected = kStart;
  std::vector<Moments> moments(kStart.size());
  for (int t = 1; t <= 20; ++t) {
    options.lr = 0.05 / t;
    optimizer.set_lr(options.lr);
    step(1);
    for (size_t k = 0; k < expected.size(); ++k) {
      reference_step(options, t, gradient_at(k, expected[k]), expected[k], moments[k]);
    }
    const std::vector<double> values = problem.values();
    for (size_t k = 0; k < expected.size(); ++k) {
      EXPECT_NEAR(values[k], expected[k], 1e-12) << "step " << t << ", element " << k;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Styles, AdamWStyle, ::testing::Bool());

TEST(AdamWTest, RatesAndStepsDoNotRecompile) {
  const Problem problem;
  AdamW optimizer(problem.parameters(), {.skip_nonfinite = true});
  const auto step = compile([&](const Tensor& factor) {
    backward(problem.loss(factor));
    optimizer.step();
  });
  for (int i = 0; i < 10; ++i) {
    optimizer.set_lr(0.1 / (i + 1));
    step(scalar(1.0));
  }
  EXPECT_EQ(step.stats().compilations, 1);
  EXPECT_EQ(step.stats().replays, 9);
}

TEST(AdamWTest, PlainStepsReuseOneProgram) {
  const Problem problem;
  AdamW optimizer(problem.parameters(), {});
  const auto step = [&] {
    backward(problem.loss(scalar(1.0)));
    optimizer.step();
  };
  step();
  const int64_t compilations = eval_stats().compilations;
  for (int i = 0; i < 5; ++i) {
    optimizer.set_lr(0.1 / (i + 1));
    step();
  }
  EXPECT_EQ(eval_stats().compilations, compilations);
}

// 1 - 0.999 in f32 is wrong in the fifth digit; the first step must still be lr · sign(g).
TEST(AdamWTest, FirstStepIsExactInF32) {
  const Var p(tensor(std::vector<float>{1, 1}), "p");
  AdamW optimizer({p}, {.lr = 0.5, .weight_decay = 0});
  backward(sum(p.value() * tensor(std::vector<float>{3, -3})));
  optimizer.step();
  const std::vector<float> values = p.value().to_vector<float>();
  EXPECT_NEAR(values[0], 0.5, 2e-7);
  EXPECT_NEAR(values[1], 1.5, 2e-7);
}

TEST(AdamWTest, HalfParametersKeepF32State) {
  const Var p(cast(ones({4}), DType::bf16), "p");
  AdamW optimizer({p}, {.lr = 0.25, .weight_decay = 0});
  ASSERT_EQ(optimizer.state().size(), 3u);  // m, v and the master
  EXPECT_EQ(optimizer.state()[0].dtype(), DType::f32);
  backward(sum(cast(p, DType::f32) * 2.0));
  optimizer.step();
  EXPECT_EQ(p.dtype(), DType::bf16);
  for (const bf16 value : p.value().to_vector<bf16>()) EXPECT_EQ(float(value), 0.75f);
}

TEST(AdamWErrors, NameWhatIsWrong) {
  const Problem problem;
  const auto make = [&](const AdamWOptions& options) {
    return error_text([&] { AdamW(problem.parameters(), options); });
  };
  EXPECT_EQ(make({.beta1 = 1}), "adamw: expected beta1 from 0 to below 1, got 1");
  EXPECT_EQ(make({.beta2 = -0.5}), "adamw: expected beta2 from 0 to below 1, got -0.5");
  EXPECT_EQ(make({.epsilon = 0}), "adamw: expected an epsilon above 0, got 0");
  EXPECT_EQ(make({.weight_decay = -1}), "adamw: expected a weight decay of at least 0, got -1");
}

}  // namespace
}  // namespace tessera
