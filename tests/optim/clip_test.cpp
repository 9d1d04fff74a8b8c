#include "tessera/optim/clip.h"

#include <gtest/gtest.h>

#include <cmath>

#include "optim/problem.h"
#include "support/expect_error.h"

namespace tessera {
namespace {

// Gradients 3 and 4: a norm of 5 over both Vars.
struct Pair {
  Var a{tensor(std::vector<float>{1}), "a"}, b{tensor(std::vector<float>{1}), "b"};
  std::vector<Var> vars{a, b};

  void set_gradients() const { backward(sum(3 * a.value()) + sum(4 * b.value())); }
};

TEST(GradNorm, IsThatOfAllTogetherAndChangesNothing) {
  const Pair pair;
  EXPECT_EQ(error_text([&] { grad_norm(pair.vars); }),
            "grad_norm: no parameter has a gradient: call backward(loss) first");
  pair.set_gradients();
  EXPECT_FLOAT_EQ(float(grad_norm(pair.vars).item()), 5);
  EXPECT_EQ(pair.a.grad().item(), 3);
}

TEST(ClipGradNorm, ScalesToTheGlobalNorm) {
  const Pair pair;
  pair.set_gradients();
  const Tensor norm = clip_grad_norm(pair.vars, 1);
  EXPECT_EQ(norm.dtype(), DType::f32);
  EXPECT_FLOAT_EQ(float(norm.item()), 5);
  EXPECT_NEAR(pair.a.grad().item(), 0.6, 1e-6);
  EXPECT_NEAR(pair.b.grad().item(), 0.8, 1e-6);
}

TEST(ClipGradNorm, LeavesSmallGradientsAlone) {
  const Pair pair;
  pair.set_gradients();
  EXPECT_FLOAT_EQ(float(clip_grad_norm(pair.vars, 6).item()), 5);
  EXPECT_EQ(pair.a.grad().item(), 3);
  EXPECT_EQ(pair.b.grad().item(), 4);
}

TEST(ClipGradNorm, NormIsReadableAfterThePlainStep) {
  const Pair pair;
  SGD optimizer(pair.vars, {.lr = 1});
  backward(sum(pair.a.value() * pair.a.value()));
  const Tensor norm = clip_grad_norm(pair.vars, 0.5);
  optimizer.step();
  EXPECT_FLOAT_EQ(float(norm.item()), 2);
  EXPECT_NEAR(pair.a.value().item(), 0.5, 1e-6);
}

TEST(ClipGradNorm, WorksInACompiledStep) {
  const Pair pair;
  SGD optimizer(pair.vars, {.lr = 1});
  const auto step = compile([&](const Tensor& factor) {
    backward(sum(factor * 3 * pair.a.value()) + sum(factor * 4 * pair.b.value()));
    const Tensor norm = clip_grad_norm(pair.vars, 1);
    optimizer.step();
    return norm;
  });
  EXPECT_FLOAT_EQ(float(step(scalar(2.0f)).item()), 10);
  EXPECT_NEAR(pair.a.value().item(), 0.4, 1e-6);
  EXPECT_FLOAT_EQ(float(step(scalar(0.1f)).item()), 0.5f);
  EXPECT_NEAR(pair.a.value().item(), 0.1, 1e-6);
}

TEST(ClipGradNorm, AZeroNormStaysZero) {
  const Pair pair;
  backward(sum(0 * pair.a.value()));
  EXPECT_EQ(clip_grad_norm(pair.vars, 1).item(), 0);
  EXPECT_EQ(pair.a.grad().item(), 0);
}

TEST(ClipGradNorm, ErrorsNameWhatIsWrong) {
  const Pair pair;
  EXPECT_EQ(error_text([&] { clip_grad_norm(pair.vars, 1); }),
            "clip_grad_norm: no parameter has a gradient: call backward(loss) first");
  EXPECT_EQ(error_text([&] { clip_grad_norm(pair.vars, 0); }),
            "clip_grad_norm: expected a norm above 0, got 0");
}

TEST(ClipGradNorm, AVarGivenTwiceIsClippedOnce) {
  const Pair pair;
  pair.set_gradients();
  const std::vector<Var> vars{pair.a, pair.b, pair.a};
  EXPECT_FLOAT_EQ(float(clip_grad_norm(vars, 1).item()), 5);
  EXPECT_NEAR(pair.a.grad().item(), 0.6, 1e-6);
}

TEST(ClipGradNorm, ANormThatIsNotFiniteMakesEveryGradientNaN) {
  const Pair pair;
  backward(sum(1e25 * pair.a.value()) + sum(4 * pair.b.value()));  // the square overflows
  clip_grad_norm(pair.vars, 1);
  EXPECT_TRUE(std::isnan(pair.a.grad().item()));
  EXPECT_TRUE(std::isnan(pair.b.grad().item()));
}

}  // namespace
}  // namespace tessera
