#include "tessera/train/debug_nan.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/expect_error.h"
#include "tessera/graph/scope.h"
#include "train/problem.h"

namespace tessera::train_test {
namespace {

TEST(FindNonfinite, NamesTheFirstOperation) {
  const Tensor x = tensor(std::vector<float>{1, 0, 4, 0});
  Tensor y;
  {
    const Scope scope("model/part");
    y = log(x);
  }
  const std::vector<Tensor> roots = {exp(x), sum(y * 2 + 1)};
  const std::string found = find_nonfinite(roots).value();
  EXPECT_TRUE(found.starts_with(
      "log of finite operands gives 2 of 4 elements that are not finite, f32(4,) (in model/part"))
      << found;
}

TEST(FindNonfinite, NamesInputs) {
  const Tensor x = tensor(std::vector<float>{1, NAN});
  const std::string found = find_nonfinite(std::vector<Tensor>{x * 2}).value();
  EXPECT_TRUE(found.starts_with("a parameter or an input holds 1 of 2 elements")) << found;
}

// Masks are written with infinities.
TEST(FindNonfinite, LetsWrittenInfinitiesPass) {
  const Tensor x = tensor(std::vector<float>{1, 2});
  const Tensor masked = where(x > 1, x, -std::numeric_limits<double>::infinity());
  EXPECT_EQ(find_nonfinite(std::vector<Tensor>{softmax(masked, -1)}), std::nullopt);
}

TEST(DebugNan, StopsAtTheStepAndNamesTheScope) {
  const Var w(ones({3}), "w");
  struct Holder : Module {
    explicit Holder(const Var& var) : Module("holder") { add_parameter("w", var); }
  } model(w);
  SGD optimizer(model.named_parameters(), {.lr = 1, .skip_nonfinite = true});
  TokenSource source(letters(100), {.batch = 2, .length = 3});
  const auto train = [&](const Trainer::Loss& loss, double clip) {
    Trainer trainer(model, optimizer, loss, source, {.steps = 10, .clip = clip, .debug_nan = true});
    return error_text([&] { trainer.run(); });
  };
  // Falls from 1 to 0, where the slope of the root is infinite.
  const std::string text = train(
      [&](std::span<const Tensor>) {
        const Scope scope("risky");
        return sum(w.value()) + 0 * sum(sqrt(w));
      },
      0);
  EXPECT_TRUE(text.find("step ") == 0 &&
              text.find("of finite operands gives") != std::string::npos &&
              text.find("(in risky") != std::string::npos)
      << text;
  w.assign(ones({3}));
  EXPECT_EQ(train([&](std::span<const Tensor>) { return sum(w * 1e25); }, 1),
            "step 1: the norm of the gradients is not finite, though all of them are");
}

// Gradients that the scale makes infinite are no mistake; a loss that is not finite is one.
TEST(DebugNan, WithAScaledLossLooksAtTheLoss) {
  const Var w(ones({1}, DType::f16), "w");
  struct Holder : Module {
    explicit Holder(const Var& var) : Module("holder") { add_parameter("w", var); }
  } model(w);
  SGD optimizer(model.named_parameters(), {.lr = 1, .skip_nonfinite = true});
  TokenSource source(letters(100), {.batch = 2, .length = 3});
  const auto train = [&](double factor) {
    Trainer trainer(model, optimizer, [&](std::span<const Tensor>) { return sum(w * factor); },
                    source, {.steps = 3, .loss_scaling = true, .debug_nan = true});
    trainer.run();
  };
  train(2);  // times 65536, which f16 does not have
  EXPECT_GE(optimizer.skipped().value().item(), 1);
  w.assign(ones({1}, DType::f16));
  const std::string text = error_text([&] { train(1e5); });
  EXPECT_TRUE(text.starts_with("step 1: ")) << text;
}

TEST(DebugNan, ChangesNothingElse) {
  Problem plain({.trainer = {.steps = 5}, .skip_nonfinite = true});
  Problem debugged({.trainer = {.steps = 5, .debug_nan = true}, .skip_nonfinite = true});
  plain.trainer.run();
  debugged.trainer.run();
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(plain.records[i].loss, debugged.records[i].loss);
}

}  // namespace
}  // namespace tessera::train_test
