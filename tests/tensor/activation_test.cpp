// Activations, clamp and lerp: values, limits and gradients where they could go wrong.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/expect_error.h"
#include "tensor/differences.h"
#include "tessera/tensor/ops.h"

namespace tessera {
namespace {

using Doubles = std::vector<double>;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

const Doubles& points() {
  static const Doubles x = {-30, -3, -1, -0.25, 0, 0.25, 1, 3, 30};
  return x;
}

Tensor at_points(DType dtype = DType::f64) { return tensor(points()).to(dtype); }

template <class F>
Doubles map(F f) {
  Doubles result;
  for (const double x : points()) result.push_back(f(x));
  return result;
}

Doubles gradient(const std::function<Tensor(const Tensor&)>& f, const Doubles& x) {
  const Tensor input = tensor(x);
  return to_doubles(grad(sum(f(input)), input));
}

double phi(double x) { return std::erfc(-x / std::sqrt(2)) / 2; }

TEST(Activations, Values) {
  expect_near(square(at_points()), map([](double x) { return x * x; }));
  expect_near(relu(at_points()), map([](double x) { return x > 0 ? x : 0; }));
  expect_near(leaky_relu(at_points()), map([](double x) { return x > 0 ? x : 0.01 * x; }));
  expect_near(leaky_relu(at_points(), 0.2), map([](double x) { return x > 0 ? x : 0.2 * x; }));
  expect_near(elu(at_points()), map([](double x) { return x > 0 ? x : std::expm1(x); }));
  expect_near(elu(at_points(), 1.5), map([](double x) { return x > 0 ? x : 1.5 * std::expm1(x); }));
  expect_near(softplus(at_points()), map([](double x) { return std::log1p(std::exp(x)); }));
  expect_near(softplus(at_points(), 2),
              map([](double x) { return std::log1p(std::exp(2 * x)) / 2; }));
  expect_near(silu(at_points()), map([](double x) { return x / (1 + std::exp(-x)); }));
  expect_near(gelu(at_points()), map([](double x) { return x * phi(x); }));
}

// Far from 0 and at the infinities, where a product or a logarithm overflows on the way.
TEST(Activations, HaveTheirLimits) {
  struct Row {
    Tensor (*f)(In);
    Doubles values;  // at -inf, -1000, 1000, inf
  };
  const Row rows[] = {
      {relu, {0, 0, 1000, kInf}},
      {silu, {0, 0, 1000, kInf}},
      {gelu, {0, 0, 1000, kInf}},
      {gelu_tanh, {0, 0, 1000, kInf}},
      {sigmoid, {0, 0, 1, 1}},
      {tanh, {-1, -1, 1, 1}},
      {[](In x) { return softplus(x); }, {0, 0, 1000, kInf}},
      {[](In x) { return elu(x); }, {-1, -1, 1000, kInf}},
      {[](In x) { return leaky_relu(x); }, {-kInf, -10, 1000, kInf}},
  };
  for (const DType dtype : {DType::f32, DType::f64}) {
    for (size_t i = 0; i < std::size(rows); ++i) {
      SCOPED_TRACE(cat(dtype, " row ", i));
      const Tensor y = rows[i].f(tensor(Doubles{-kInf, -1000, 1000, kInf}).to(dtype));
      EXPECT_EQ(to_doubles(y), rows[i].values);
      EXPECT_TRUE(std::isnan(rows[i].f(tensor(Doubles{kNan}).to(dtype)).item()));
    }
  }
}

TEST(Activations, GradientsAtZeroAndFarAway) {
  const Doubles x = {-kInf, -1000, 0, 1000};
  EXPECT_EQ(gradient(relu, x), (Doubles{0, 0, 0, 1}));
  EXPECT_EQ(gradient([](const Tensor& t) { return leaky_relu(t, 0.5); }, x),
            (Doubles{0.5, 0.5, 0.5, 1}));
  EXPECT_EQ(gradient([](const Tensor& t) { return elu(t, 2); }, x), (Doubles{0, 0, 2, 1}));
  EXPECT_EQ(gradient([](const Tensor& t) { return softplus(t); }, x), (Doubles{0, 0, 0.5, 1}));
  EXPECT_EQ(gradient(sigmoid, x), (Doubles{0, 0, 0.25, 0}));
  EXPECT_EQ(gradient(silu, x), (Doubles{0, 0, 0.5, 1}));
  EXPECT_EQ(gradient(gelu, x), (Doubles{0, 0, 0.5, 1}));
  EXPECT_TRUE(std::isnan(gradient([](const Tensor& t) { return relu(t) * t; }, {kNan})[0]));
}

TEST(Activations, GradientsOfBothOrders) {
  const Tensor x = random_tensor({7}, 3, DType::f64, -3, 3);
  const std::function<Tensor(const Tensor&)> functions[] = {
      square,
      silu,
      gelu,
      gelu_tanh,
      sigmoid,
      [](const Tensor& t) { return softplus(t, 1.5); },
      [](const Tensor& t) { return elu(t, 0.5) * t; },
      [](const Tensor& t) { return leaky_relu(t, 0.1) * t; },
  };
  for (size_t i = 0; i < std::size(functions); ++i) {
    SCOPED_TRACE(i);
    expect_gradients([&](const std::vector<Tensor>& in) { return functions[i](in[0]); }, {x});
  }
}

TEST(Activations, SoftplusIsSmoothAtZero) {
  const Tensor x = scalar(0.0);
  const Tensor slope = grad(softplus(x), x);
  EXPECT_EQ(slope.item(), 0.5);
  EXPECT_EQ(grad(slope, x).item(), 0.25);
  EXPECT_EQ(error_text([&] { softplus(x, 0); }), "softplus: expected a beta above 0, got 0");
}

// Computed in the half type, 1 + erf or 1 + exp would lose what is below the last place of 1.
TEST(Activations, HalfTypesRoundOnlyTheResult) {
  struct Row {
    std::function<Tensor(const Tensor&)> f;
    std::function<double(double)> exact;
  };
  const Row rows[] = {
      {gelu, [](double x) { return x * phi(x); }},
      {silu, [](double x) { return x / (1 + std::exp(-x)); }},
      {[](const Tensor& x) { return softplus(x); },
       [](double x) { return std::log1p(std::exp(x)); }},
      {[](const Tensor& x) { return elu(x); }, [](double x) { return x > 0 ? x : std::expm1(x); }},
  };
  for (const DType dtype : {DType::f16, DType::bf16}) {
    for (size_t k = 0; k < std::size(rows); ++k) {
      const Tensor x = random_tensor({500}, 5, dtype, -3, 3), y = rows[k].f(x);
      EXPECT_EQ(y.dtype(), dtype);
      const Doubles in = to_doubles(x), out = to_doubles(y);
      for (size_t i = 0; i < in.size(); ++i) {
        const double expected = rows[k].exact(in[i]);
        EXPECT_NEAR(out[i], expected, 0.51 * ulp(dtype, expected)) << name(dtype) << " row " << k;
      }
    }
  }
}

TEST(Activations, TakeIntegers) {
  const Tensor x = tensor(std::vector<int32_t>{-2, 0, 3});
  EXPECT_EQ(relu(x).dtype(), DType::i32);
  EXPECT_EQ(to_doubles(relu(x)), (Doubles{0, 0, 3}));
  EXPECT_EQ(square(x).dtype(), DType::i32);
  EXPECT_EQ(leaky_relu(x, 0.5).dtype(), DType::f32);
  EXPECT_EQ(to_doubles(leaky_relu(x, 0.5)), (Doubles{-1, 0, 3}));
}

TEST(Clamp, WithLiterals) {
  const Tensor x = tensor(Doubles{-2, -1, 0, 1, 2, kNan});
  const Doubles both = to_doubles(clamp(x, -1, 1));
  EXPECT_EQ(Doubles(both.begin(), both.end() - 1), (Doubles{-1, -1, 0, 1, 1}));
  EXPECT_TRUE(std::isnan(both.back()));
  const Tensor whole = tensor(std::vector<int32_t>{-5, 0, 5});
  EXPECT_EQ(clamp(whole, -1, 3).dtype(), DType::i32);
  EXPECT_EQ(to_doubles(clamp(whole, -1, 3)), (Doubles{-1, 0, 3}));
  EXPECT_EQ(to_doubles(clamp(whole, 1, std::nullopt)), (Doubles{1, 1, 5}));
  EXPECT_EQ(to_doubles(clamp(whole, std::nullopt, 1)), (Doubles{-5, 0, 1}));
  EXPECT_EQ(to_doubles(clamp(whole, 4, 2)), (Doubles{2, 2, 2}));
  EXPECT_EQ(to_doubles(clamp(x, 0.5, kInf))[4], 2);
  EXPECT_EQ(error_text([&] { clamp(x, std::nullopt, std::nullopt); }),
            "clamp: expected a low or a high bound, got neither");
}

TEST(Clamp, PassesTheGradientAtTheBounds) {
  const Doubles x = {-2, -1, 0, 1, 2};
  EXPECT_EQ(gradient([](const Tensor& t) { return clamp(t, -1, 1); }, x), (Doubles{0, 1, 1, 1, 0}));
  const Tensor in = tensor(x), low = tensor(Doubles(5, -1)), high = tensor(Doubles(5, 1));
  const std::vector<Tensor> inputs = {in, low, high};
  const std::vector<Tensor> g = grad(sum(clamp(in, low, high)), inputs);
  EXPECT_EQ(to_doubles(g[0]), (Doubles{0, 1, 1, 1, 0}));
  EXPECT_EQ(to_doubles(g[1]), (Doubles{1, 0, 0, 0, 0}));
  EXPECT_EQ(to_doubles(g[2]), (Doubles{0, 0, 0, 0, 1}));
}

TEST(Clamp, WithTensors) {
  const Tensor x = tensor(Doubles{-2, 0, 2}), low = tensor(Doubles{-1, kNan, 0});
  const Doubles y = to_doubles(clamp(x, low, scalar(1.0)));
  EXPECT_EQ(y[0], -1);
  EXPECT_TRUE(std::isnan(y[1]));
  EXPECT_EQ(y[2], 1);
  EXPECT_EQ(to_doubles(clamp(x, scalar(3.0), scalar(1.0))), (Doubles{1, 1, 1}));
}

TEST(Lerp, BetweenTensors) {
  const Tensor a = tensor(Doubles{1, 2, 1e16}), b = tensor(Doubles{3, 6, 1});
  EXPECT_EQ(to_doubles(lerp(a, b, 0.25)), (Doubles{1.5, 3, 0.75e16 + 0.25}));
  EXPECT_EQ(to_doubles(lerp(a, b, 0)), to_doubles(a));
  EXPECT_EQ(to_doubles(lerp(a, b, 1)), to_doubles(b));
  EXPECT_EQ(to_doubles(lerp(a, b, tensor(Doubles{0.5, 0, 1}))), (Doubles{2, 2, 1}));
  EXPECT_EQ(lerp(ones({1}, DType::i32), ones({1}, DType::i32), 0.5).dtype(), DType::f32);
  EXPECT_EQ(lerp(ones({1}, DType::f16), zeros({1}, DType::f16), 0.5).dtype(), DType::f16);
  const Tensor x = random_tensor({5}, 1, DType::f64), y = random_tensor({5}, 2, DType::f64);
  const Tensor w = random_tensor({5}, 3, DType::f64, 0, 1);
  expect_gradients([](const std::vector<Tensor>& in) { return lerp(in[0], in[1], in[2]); },
                   {x, y, w});
}

double unit_of(float x) { return std::ldexp(1.0, std::ilogb(x) - 23); }

TEST(Activation, GeluIsWithinTwoUnitsOfItsArgument) {
  std::vector<float> x;
  for (int i = 1; i < 200000; ++i) x.push_back(-12 + float(i) * 1.2e-4f);
  const std::vector<float> y = gelu(tensor(x, {int64_t(x.size())})).to_vector<float>();
  for (size_t i = 0; i < x.size(); ++i) {
    if (x[i] == 0) continue;
    const double exact = 0.5 * double(x[i]) * std::erfc(-double(x[i]) / std::sqrt(2.0));
    ASSERT_LE(std::abs(double(y[i]) - exact), 2 * unit_of(x[i])) << x[i];
  }
}

TEST(Activation, GeluTanhIsWithinFourUnitsAboveMinusOne) {
  std::vector<float> x;
  for (int i = 1; i < 200000; ++i) x.push_back(-1 + float(i) * 1e-4f);
  const std::vector<float> y = gelu_tanh(tensor(x, {int64_t(x.size())})).to_vector<float>();
  for (size_t i = 0; i < x.size(); ++i) {
    const double a = double(x[i]), w = 1.5957691216057308 * (a + 0.044715 * a * a * a);
    const double exact = a / (1 + std::exp(-w));
    if (exact == 0) continue;
    ASSERT_LE(std::abs(double(y[i]) - exact), 4 * unit_of(float(exact))) << x[i];
  }
}

}  // namespace
}  // namespace tessera
