#include "tessera/optim/sgd.h"

#include <gtest/gtest.h>

#include "optim/problem.h"
#include "support/expect_error.h"

namespace tessera {
namespace {

// The loop of PyTorch's documentation of SGD, for one parameter.
void reference_step(const SGDOptions& o, bool is_first, double g, double& p, double& buffer) {
  g += o.weight_decay * p;
  if (o.momentum != 0) {
    buffer = is_first ? g : o.momentum * buffer + g;
    g = o.nesterov ? g + o.momentum * buffer : buffer;
  }
  p -= o.lr * g;
}

struct Case {
  const char* name;
  SGDOptions options;
};

const Case kCases[] = {
    {"plain", {.lr = 0.1}},
    {"decay", {.lr = 0.1, .weight_decay = 0.05}},
    {"momentum", {.lr = 0.05, .momentum = 0.9}},
    {"momentum_decay", {.lr = 0.05, .momentum = 0.8, .weight_decay = 0.1}},
    {"nesterov", {.lr = 0.05, .momentum = 0.9, .weight_decay = 0.01, .nesterov = true}},
};

class Sgd : public ::testing::TestWithParam<std::tuple<Case, bool>> {};

TEST_P(Sgd, FollowsTheFormulae) {
  const auto& [test, compiled] = GetParam();
  const Problem problem;
  SGD optimizer(problem.parameters(), test.options);
  const StepFunction step = make_step(compiled, [&](const Tensor& factor) {
    backward(problem.loss(factor));
    optimizer.step();
  });
  std::vector<double> expected = kStart, buffers(kStart.size());
  for (int i = 0; i < 20; ++i) {
    step(1);
    for (size_t k = 0; k < expected.size(); ++k) {
      const double g = gradient_at(k, expected[k]);
      reference_step(test.options, i == 0, g, expected[k], buffers[k]);
    }
    const std::vector<double> values = problem.values();
    for (size_t k = 0; k < expected.size(); ++k) {
      EXPECT_NEAR(values[k], expected[k], 1e-12) << "step " << i << ", element " << k;
    }
  }
  EXPECT_EQ(optimizer.steps().value().item(), 20);
}

INSTANTIATE_TEST_SUITE_P(Styles, Sgd,
                         ::testing::Combine(::testing::ValuesIn(kCases), ::testing::Bool()),
                         [](const auto& test) {
                           return std::string(std::get<0>(test.param).name) +
                                  (std::get<1>(test.param) ? "_compiled" : "_plain_style");
                         });

TEST(SgdState, ExistsForMomentumAlone) {
  const Problem problem;
  EXPECT_TRUE(SGD(problem.parameters(), {.lr = 0.1}).state().empty());
  EXPECT_EQ(SGD(problem.parameters(), {.momentum = 0.5}).state().size(), 2u);
}

TEST(SgdErrors, NameWhatIsWrong) {
  const Problem problem;
  const auto make = [&](const SGDOptions& options) {
    return error_text([&] { SGD(problem.parameters(), options); });
  };
  EXPECT_EQ(make({.momentum = 1}), "sgd: expected a momentum from 0 to below 1, got 1");
  EXPECT_EQ(make({.weight_decay = -1}), "sgd: expected a weight decay of at least 0, got -1");
  EXPECT_EQ(make({.nesterov = true}), "sgd: nesterov expects a momentum above 0, got 0");
  EXPECT_EQ(make({.momentum = 0.5, .dampening = 2}),
            "sgd: expected a dampening from 0 to 1, got 2");
  EXPECT_EQ(make({.momentum = 0.5, .dampening = 0.5, .nesterov = true}),
            "sgd: nesterov expects a dampening of 0, got 0.5");
  EXPECT_EQ(make({.lr = -0.5}), "set_lr: expected a finite learning rate of at least 0, got -0.5");
}

}  // namespace
}  // namespace tessera
