// Gradients of tensors and Vars: grad, backward, stop_gradient, custom_vjp, checkpoint.
#include "tessera/tensor/autograd.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/expect_error.h"
#include "tessera/conformance/reference.h"
#include "tessera/tensor/compiled.h"
#include "tessera/tensor/ops.h"
#include "tessera/tensor/random.h"

namespace tessera {
namespace {

using Doubles = std::vector<double>;
using Tensors = std::vector<Tensor>;

Tensor vec(std::vector<float> values) { return tensor(values); }

TEST(Grad, OfSeveralInputs) {
  const Tensor a = vec({1, 2}), b = vec({3, 4});
  const Tensors inputs = {a, b};
  const Tensors g = grad(sum(a * b + a), inputs);
  EXPECT_EQ(to_doubles(g[0]), (Doubles{4, 5}));
  EXPECT_EQ(to_doubles(g[1]), (Doubles{1, 2}));
}

TEST(Grad, OfAnIntermediateValue) {
  const Tensor x = vec({1, 2});
  const Tensor y = x * x;
  EXPECT_EQ(to_doubles(grad(sum(y * y), y)), (Doubles{2, 8}));
}

TEST(Grad, UnconnectedInputsGetZeros) {
  const Tensor x = vec({1, 2});
  const Tensor other = ones({2, 3}, DType::f64);
  const Tensor g = grad(sum(x), other);
  EXPECT_EQ(g.value().type(), other.value().type());
  EXPECT_EQ(to_doubles(g), Doubles(6, 0));
}

TEST(Grad, CanBeDifferentiatedAgain) {
  const Tensor x = scalar(2.0);
  Tensor y = x * x * x * x;
  for (const double expected : {32.0, 48.0, 48.0, 24.0, 0.0}) {
    y = grad(y, x);
    EXPECT_EQ(y.item(), expected);
  }
}

TEST(Grad, ThroughBroadcastingAndPromotion) {
  const Tensor column = reshape(vec({1, 2}), {2, 1}), row = tensor(std::vector<double>{1, 2, 3});
  const Tensors inputs = {column, row};
  const Tensors g = grad(sum(column * row), inputs);
  EXPECT_EQ(g[0].dtype(), DType::f32);
  EXPECT_EQ(g[0].shape(), (Shape{2, 1}));
  EXPECT_EQ(to_doubles(g[0]), (Doubles{6, 6}));
  EXPECT_EQ(g[1].dtype(), DType::f64);
  EXPECT_EQ(to_doubles(g[1]), (Doubles{3, 3, 3}));
}

TEST(GradError, Texts) {
  const Tensor x = vec({1, 2});
  EXPECT_EQ(error_text([&] { grad(x, x); }), "grad: expected a loss of one element, got (2,)");
  EXPECT_EQ(error_text([&] { backward(x); }), "backward: expected a loss of one element, got (2,)");
  EXPECT_EQ(error_text([&] { grad(sum(arange(3)), x); }),
            "grad: expected a floating-point loss, got i64");
  EXPECT_EQ(error_text([&] { grad(sum(x), arange(3)); }),
            "grad: expected a floating-point input, got i64");
  const Tensor two = full({3}, 2);
  EXPECT_EQ(error_text([&] { grad(sum(two * two * 2.0), two); }),
            "grad: an input is made of literals alone (ones, zeros, full, arange): write .detach() "
            "behind it to differentiate by it");
  const Tensor own = two.detach();
  EXPECT_EQ(grad(sum(own * own * 2.0), own).to_vector<float>(), (std::vector<float>{8, 8, 8}));
}

TEST(Backward, AddsUpInTrainableVars) {
  const Var w(vec({1, 2}), "w"), frozen(vec({3, 4}), "frozen", false);
  EXPECT_FALSE(w.grad().defined());
  backward(sum(w.value() * frozen.value()));
  EXPECT_EQ(to_doubles(w.grad()), (Doubles{3, 4}));
  EXPECT_FALSE(frozen.grad().defined());
  backward(sum(w.value() * w.value()));
  EXPECT_EQ(to_doubles(w.grad()), (Doubles{5, 8}));
  w.set_grad({});
  EXPECT_FALSE(w.grad().defined());
}

TEST(Backward, TiedWeightsGetBothGradients) {
  const Var w(vec({2}), "w");
  const Var tied = w;
  backward(sum(w.value() * 3 + tied.value() * w.value()));
  EXPECT_EQ(to_doubles(w.grad()), (Doubles{3 + 4}));
}

TEST(StopGradient, BlocksOneWay) {
  const Tensor x = vec({3});
  EXPECT_EQ(to_doubles(grad(sum(x * stop_gradient(x)), x)), (Doubles{3}));
  EXPECT_EQ(to_doubles(grad(sum(stop_gradient(x * x)), x)), (Doubles{0}));
  EXPECT_EQ(to_doubles(stop_gradient(x)), (Doubles{3}));
}

// Rounds forwards, passes the gradient straight through backwards.
Tensor round_through(const Tensor& x) {
  return custom_vjp([](const Tensors& in) { return Tensors{floor(in[0] + 0.5)}; },
                    [](const Tensors&, const Tensors&, const Tensors& g) { return g; }, {x})[0];
}

TEST(CustomVjp, ReplacesTheGradient) {
  const Tensor x = vec({0.4f, 0.6f});
  const Tensor y = round_through(x);
  EXPECT_EQ(to_doubles(y), (Doubles{0, 1}));
  EXPECT_EQ(to_doubles(grad(sum(y * vec({2, 3})), x)), (Doubles{2, 3}));
}

TEST(CustomVjp, SeesInputsOutputsAndGradients) {
  // y = x², z = 3x; the gradient returned is x + 10 y + 100 dy + 1000 dz.
  const Tensor x = vec({2});
  const Tensors both = custom_vjp(
      [](const Tensors& in) {
        return Tensors{in[0] * in[0], in[0] * 3};
      },
      [](const Tensors& in, const Tensors& out, const Tensors& g) {
        return Tensors{in[0] + out[0] * 10 + g[0] * 100 + g[1] * 1000};
      },
      {x});
  EXPECT_EQ(to_doubles(grad(sum(both[0]), x)), (Doubles{2 + 40 + 100}));
  EXPECT_EQ(to_doubles(grad(sum(both[1]), x)), (Doubles{2 + 40 + 1000}));
  EXPECT_EQ(to_doubles(grad(sum(both[0] + both[1] * 2), x)), (Doubles{2 + 40 + 100 + 2000}));
}

TEST(CustomVjp, AnEmptyGradientIsNone) {
  const Tensor x = vec({2}), y = vec({5});
  const Tensor z = custom_vjp([](const Tensors& in) { return Tensors{in[0] * in[1]}; },
                              [](const Tensors& in, const Tensors&, const Tensors& g) {
                                return Tensors{g[0] * in[1], Tensor()};
                              },
                              {x, y})[0];
  const Tensors inputs = {x, y};
  const Tensors g = grad(sum(z), inputs);
  EXPECT_EQ(to_doubles(g[0]), (Doubles{5}));
  EXPECT_EQ(to_doubles(g[1]), (Doubles{0}));
}

TEST(CustomVjp, ItsGradientIsDifferentiated) {
  const Tensor x = scalar(3.0);
  const Tensor y = custom_vjp([](const Tensors& in) { return Tensors{in[0] * in[0]}; },
                              [](const Tensors& in, const Tensors&, const Tensors& g) {
                                return Tensors{g[0] * in[0] * in[0]};
                              },
                              {x})[0];
  const Tensor first = grad(y, x);
  EXPECT_EQ(first.item(), 9);
  EXPECT_EQ(grad(first, x).item(), 6);
}

TEST(CustomVjp, TwoOfTheSameFunctionStayApart) {
  const Tensor x = vec({2});
  auto scaled = [&](float factor) {
    return custom_vjp([](const Tensors& in) { return Tensors{in[0] * 1}; },
                      [factor](const Tensors&, const Tensors&, const Tensors& g) {
                        return Tensors{g[0] * factor};
                      },
                      {x})[0];
  };
  EXPECT_EQ(to_doubles(grad(sum(scaled(3) + scaled(5)), x)), (Doubles{8}));
}

TEST(CustomVjpError, Texts) {
  const Tensor x = vec({2, 3});
  auto through = [&](const TensorVjp& vjp) {
    const Tensor y = custom_vjp([](const Tensors& in) { return Tensors{in[0] * 2}; }, vjp, {x})[0];
    return grad(sum(y), x);
  };
  EXPECT_EQ(error_text([&] {
              through([](const Tensors&, const Tensors&, const Tensors&) { return Tensors{}; });
            }),
            "custom_vjp: expected 1 gradients, got 0");
  EXPECT_EQ(error_text([&] {
              through([](const Tensors&, const Tensors&, const Tensors& g) {
                return Tensors{sum(g[0])};
              });
            }),
            "custom_vjp: expected a gradient of f32(2,) for input 0, got f32()");
}

// Two layers, whose weights are captured or given.
Tensors block(const Tensors& in) {
  const Tensor h = tanh(matmul(in[0], in[1]));
  return {tanh(matmul(h, in[1])) + in[0]};
}

void expect_same_bits(const Tensor& a, const Tensor& b) {
  EXPECT_EQ(a.to_vector<float>(), b.to_vector<float>());
}

TEST(Checkpoint, GradientsAreBitwiseEqual) {
  const Tensors inputs = {random_tensor({8, 8}, 1), random_tensor({8, 8}, 2),
                          random_tensor({8, 8}, 3), random_tensor({8, 8}, 4)};
  auto loss = [&](bool with) {
    Tensor y = inputs[0];
    for (size_t i = 1; i < inputs.size(); ++i) {
      y = (with ? checkpoint(block, {y, inputs[i]}) : block({y, inputs[i]}))[0];
    }
    return sum(y * y);
  };
  expect_same_bits(loss(true), loss(false));
  const Tensors with = grad(loss(true), inputs), without = grad(loss(false), inputs);
  for (size_t i = 0; i < inputs.size(); ++i) expect_same_bits(with[i], without[i]);
}

// Each region first adds up its own part of a shared input's gradient, so only rounding may differ.
TEST(Checkpoint, AnInputSharedByRegions) {
  const Tensor x = random_tensor({8, 8}, 1, DType::f64), w = random_tensor({8, 8}, 2, DType::f64);
  auto gradient = [&](bool with) {
    Tensor y = x;
    for (int i = 0; i < 3; ++i) y = (with ? checkpoint(block, {y, w}) : block({y, w}))[0];
    return to_doubles(grad(sum(y * y), w));
  };
  const Doubles with = gradient(true), without = gradient(false);
  for (size_t i = 0; i < with.size(); ++i) EXPECT_NEAR(with[i], without[i], 1e-12) << i;
}

TEST(Checkpoint, InsideACompiledFunction) {
  const Tensor w = random_tensor({8, 8}, 2);
  auto gradient = [&](bool with) {
    return compile([&w, with](const Tensor& x) {
      const Tensor y = (with ? checkpoint(block, {x, w}) : block({x, w}))[0];
      return grad(sum(y * y), x);
    });
  };
  const Tensor x = random_tensor({8, 8}, 1);
  const auto with = gradient(true), without = gradient(false);
  expect_same_bits(with(x), without(x));
  EXPECT_GT(with.program().report.rematerialized, 0);
  EXPECT_EQ(without.program().report.rematerialized, 0);
}

TEST(Checkpoint, Nested) {
  const Tensors inputs = {random_tensor({8, 8}, 1), random_tensor({8, 8}, 2),
                          random_tensor({8, 8}, 3)};
  auto outer = [](bool with) {
    return [with](const Tensors& in) {
      const Tensors inner = {in[0], in[1]};
      const Tensor y = (with ? checkpoint(block, inner) : block(inner))[0];
      return block({exp(y * 0.1), in[2]});
    };
  };
  const Tensor nested = sum(checkpoint(outer(true), inputs)[0]),
               plain = sum(outer(false)(inputs)[0]);
  expect_same_bits(nested, plain);
  const Tensors with = grad(nested, inputs), without = grad(plain, inputs);
  for (size_t i = 0; i < inputs.size(); ++i) expect_same_bits(with[i], without[i]);
}

TEST(Checkpoint, CapturedTensors) {
  const Tensor x = random_tensor({8, 8}, 1), w = random_tensor({8, 8}, 2);
  const Tensor captured = sin(w) * 2;  // computed outside, used inside
  auto f = [&](const Tensors& in) { return Tensors{tanh(matmul(exp(in[0] * 0.1), captured))}; };
  const Tensor with = sum(checkpoint(f, {x})[0]), without = sum(f({x})[0]);
  expect_same_bits(grad(with, w), grad(without, w));
  expect_same_bits(grad(with, x), grad(without, x));
}

TEST(Checkpoint, CapturedVarsLearn) {
  const Var w(random_tensor({8, 8}, 2), "w");
  const Tensor x = random_tensor({8, 8}, 1);
  auto f = [&](const Tensors& in) { return Tensors{tanh(matmul(in[0], w))}; };
  backward(sum(checkpoint(f, {x})[0]));
  const Tensor with = w.grad().detach();
  w.set_grad({});
  backward(sum(f({x})[0]));
  expect_same_bits(with, w.grad());
}

TEST(Checkpoint, RepeatsItsRandomNumbers) {
  const Random random(3);
  const Tensor x = vec(std::vector<float>(64, 2));
  auto drop = [&](const Tensors& in) { return Tensors{random.dropout(in[0] * in[0], 0.5)}; };
  const Tensor kept = checkpoint(drop, {x})[0];
  const Doubles y = to_doubles(kept), g = to_doubles(grad(sum(kept), x));
  for (size_t i = 0; i < y.size(); ++i) EXPECT_EQ(g[i], y[i] == 0 ? 0 : 8) << i;
}

TEST(Checkpoint, SecondOrder) {
  const Tensor x = scalar(0.5);
  const Tensor y =
      checkpoint([](const Tensors& in) { return Tensors{sin(in[0] * in[0])}; }, {x})[0];
  const Tensor second = grad(grad(y, x), x);
  EXPECT_NEAR(second.item(), 2 * std::cos(0.25) - 4 * 0.25 * std::sin(0.25), 1e-12);
}

TEST(Checkpoint, AnInputThatIsReturned) {
  const Tensor x = vec({2});
  const Tensors both = checkpoint(
      [](const Tensors& in) {
        return Tensors{in[0], in[0] * in[0]};
      },
      {x});
  EXPECT_EQ(to_doubles(grad(sum(both[0] * 5 + both[1]), x)), (Doubles{9}));
}

TEST(Backward, ALossOfReplacedParametersSaysSo) {
  const Var w(tensor<float>({1, 2}), "w");
  const Tensor loss = sum(w.value() * w.value());
  auto step = compile([&] { w.assign(w.value() + 1); });
  step();
  const std::string text = error_text([&] { backward(loss); });
  EXPECT_TRUE(text.starts_with("w: value was replaced by step ")) << text;
}

}  // namespace
}  // namespace tessera
