// Attention and rotary embeddings against plain loops in f64.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "support/expect_error.h"
#include "tensor/differences.h"
#include "tessera/tensor/compiled.h"
#include "tessera/tensor/random.h"

namespace tessera {
namespace {

using Doubles = std::vector<double>;
using Tensors = std::vector<Tensor>;

constexpr double kInf = std::numeric_limits<double>::infinity();

struct Sizes {
  int64_t b = 2, h = 4, g = 2, t = 3, s = 5, d = 4, e = 3;

  Tensor q(DType dtype = DType::f64) const { return random_tensor({b, h, t, d}, 41, dtype, -2, 2); }
  Tensor k(DType dtype = DType::f64) const { return random_tensor({b, g, s, d}, 42, dtype, -2, 2); }
  Tensor v(DType dtype = DType::f64) const { return random_tensor({b, g, s, e}, 43, dtype, -2, 2); }
};

// What is added to the score of key s for query (b, h, t); -inf: it is not seen.
using Bias = std::function<double(int64_t b, int64_t h, int64_t t, int64_t s)>;

double at(const Doubles& x, const Shape& shape, int64_t i, int64_t j, int64_t k, int64_t l) {
  return x[size_t(((i * shape[1] + j) * shape[2] + k) * shape[3] + l)];
}

Doubles attention_loop(const Tensor& q, const Tensor& k, const Tensor& v, const Bias& bias,
                       double scale) {
  const Doubles qs = to_doubles(q), ks = to_doubles(k), vs = to_doubles(v);
  Doubles out;
  for (int64_t b = 0; b < q.size(0); ++b) {
    for (int64_t h = 0; h < q.size(1); ++h) {
      const int64_t group = h / (q.size(1) / k.size(1));
      for (int64_t t = 0; t < q.size(2); ++t) {
        Doubles weights;
        double top = -kInf, sum = 0;
        for (int64_t s = 0; s < k.size(2); ++s) {
          double score = 0;
          for (int64_t d = 0; d < q.size(3); ++d) {
            score += at(qs, q.shape(), b, h, t, d) * at(ks, k.shape(), b, group, s, d);
          }
          weights.push_back(score * scale + bias(b, h, t, s));
          top = std::max(top, weights.back());
        }
        for (double& w : weights) sum += w = top == -kInf ? 0 : std::exp(w - top);
        for (int64_t e = 0; e < v.size(3); ++e) {
          double total = 0;
          for (int64_t s = 0; s < k.size(2); ++s) {
            if (weights[size_t(s)] == 0) continue;
            total += weights[size_t(s)] / sum * at(vs, v.shape(), b, group, s, e);
          }
          out.push_back(total);
        }
      }
    }
  }
  return out;
}

double no_bias(int64_t, int64_t, int64_t, int64_t) { return 0; }

void check(const Sizes& z, const AttentionOptions& options, const Bias& bias) {
  const Tensor q = z.q(), k = z.k(), v = z.v();
  const double scale = options.scale.value_or(1 / std::sqrt(double(z.d)));
  const Tensor y = attention(q, k, v, options);
  ASSERT_EQ(y.shape(), (Shape{z.b, z.h, z.t, z.e}));
  expect_near(y, attention_loop(q, k, v, bias, scale));
}

TEST(Attention, HeadsAloneAndInGroups) {
  for (const int64_t groups : {1, 2, 4}) {
    SCOPED_TRACE(groups);
    check({.g = groups}, {}, no_bias);
    check({.g = groups, .t = 1}, {}, no_bias);
  }
  check({}, {.scale = 0.1}, no_bias);
  check({.s = 1}, {}, no_bias);
}

TEST(Attention, CausalIsAlignedAtTheEnd) {
  for (const auto& [t, s] : {std::pair<int64_t, int64_t>{4, 4}, {2, 5}, {1, 5}, {5, 2}}) {
    SCOPED_TRACE(cat(t, " queries, ", s, " keys"));
    const int64_t shift = s - t;
    check({.t = t, .s = s}, {.causal = true}, [&](int64_t, int64_t, int64_t query, int64_t key) {
      return key <= query + shift ? 0 : -kInf;
    });
  }
}

TEST(Attention, BoolMasksBroadcast) {
  const Sizes z;
  for (const Shape& shape : {Shape{}, {5}, {3, 5}, {3, 1}, {2, 1, 1, 5}, {4, 3, 5}, {2, 4, 3, 5}}) {
    SCOPED_TRACE(to_string(shape));
    const Tensor mask = random_tensor(shape, 44) > -0.2;
    const Doubles allowed = to_doubles(broadcast_to(cast(mask, DType::f64), {2, 4, 3, 5}));
    check(z, {.mask = mask}, [&](int64_t b, int64_t h, int64_t t, int64_t s) {
      return at(allowed, {2, 4, 3, 5}, b, h, t, s) != 0 ? 0 : -kInf;
    });
  }
}

TEST(Attention, AdditiveMasksOfEveryFloatType) {
  const Sizes z;
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16, DType::f16}) {
    SCOPED_TRACE(to_string(dtype));
    const Tensor noise = random_tensor({4, 3, 5}, 45, dtype);
    const Tensor mask = where(noise > 0.5, full({}, -kInf, dtype), noise);
    const Doubles added = to_doubles(mask);
    check(z, {.mask = mask}, [&](int64_t, int64_t h, int64_t t, int64_t s) {
      return added[size_t((h * 3 + t) * 5 + s)];
    });
  }
}

TEST(Attention, Lengths) {
  const std::vector<int32_t> lengths = {2, 9};  // beyond the keys: all of them
  check({}, {.lengths = tensor(lengths)},
        [&](int64_t b, int64_t, int64_t, int64_t s) { return s < lengths[size_t(b)] ? 0 : -kInf; });
  const std::vector<uint8_t> none = {0, 3};
  check({}, {.lengths = tensor(none)},
        [&](int64_t b, int64_t, int64_t, int64_t s) { return s < none[size_t(b)] ? 0 : -kInf; });
}

TEST(Attention, RestrictionsAddUp) {
  const std::vector<int64_t> lengths = {3, 4};
  const Tensor mask = random_tensor({3, 5}, 46, DType::f64) * 3;
  const Doubles added = to_doubles(mask);
  check({.g = 4}, {.causal = true, .mask = mask, .lengths = tensor(lengths)},
        [&](int64_t b, int64_t, int64_t t, int64_t s) {
          const bool seen = s <= t + 2 && s < lengths[size_t(b)];
          return seen ? added[size_t(t * 5 + s)] : -kInf;
        });
}

TEST(Attention, AQueryThatSeesNothingGivesZerosAndNoGradient) {
  const Sizes z = {.b = 1, .h = 2, .g = 1, .t = 3, .s = 2};
  const Tensor q = z.q(), k = z.k(), v = z.v();
  const Tensor allowed = tensor<bool>({false, false, true, false, true, true}, {3, 2});
  const Tensor added = tensor<double>({-kInf, -kInf, 0, -kInf, 0, 0}, {3, 2});
  for (const AttentionOptions& options :
       {AttentionOptions{.causal = true}, {.mask = allowed}, {.mask = added}}) {
    const Tensor y = attention(q, k, v, options);
    const Doubles g = to_doubles(grad(sum(y * y), q));
    const Doubles values = to_doubles(y);
    for (size_t h = 0; h < 2; ++h) {
      for (size_t i = 0; i < 3; ++i) EXPECT_EQ(values[h * 9 + i], 0);
      for (size_t i = 0; i < 4; ++i) EXPECT_EQ(g[h * 12 + i], 0);
    }
    expect_gradients([&](const Tensors& in) { return attention(in[0], in[1], in[2], options); },
                     {q, k, v});
  }
  const AttentionOptions blind = {.lengths = tensor<int64_t>({0})};
  for (const Tensor& g : grad(sum(attention(q, k, v, blind)), Tensors{q, k, v})) {
    for (const double value : to_doubles(g)) EXPECT_EQ(value, 0);
  }
}

TEST(Attention, Gradients) {
  const Sizes z = {.b = 1, .h = 2, .g = 1, .t = 2, .s = 3, .d = 2, .e = 2};
  const Tensor bias = random_tensor({2, 2, 3}, 47, DType::f64);
  expect_gradients(
      [](const Tensors& in) {
        return attention(in[0], in[1], in[2], {.causal = true, .mask = in[3]});
      },
      {z.q(), z.k(), z.v(), bias});
}

TEST(Attention, LargeScoresDoNotOverflow) {
  const Sizes z;
  const Tensor q = z.q() * 1e4, k = z.k() * 1e4;
  expect_near(attention(q, k, z.v()), attention_loop(q, k, z.v(), no_bias, 0.5));
  // Scores beyond f16, of which the differences still count.
  const Tensor one = full({1, 1, 1, 1}, 1000, DType::f16),
               keys = tensor<float>({1000, 1000, 999}, {1, 1, 3, 1}),
               values = tensor<float>({1, 3, 100}, {1, 1, 3, 1});
  const Tensor y = attention(one, cast(keys, DType::f16), cast(values, DType::f16));
  EXPECT_EQ(y.dtype(), DType::f16);
  EXPECT_EQ(y.item(), 2);
}

// The least float as a mask, the habit of other libraries, must not mix with what is not seen.
TEST(Attention, TheLeastNumberAsAMaskStillSees) {
  const Sizes z;
  const Tensor low = full({3, 5}, double(std::numeric_limits<float>::lowest()));
  const Tensor y = attention(z.q(DType::f32), z.k(DType::f32), z.v(DType::f32),
                             {.mask = low, .lengths = tensor<int64_t>({2, 2})});
  const Doubles v = to_doubles(z.v(DType::f32)), values = to_doubles(y);
  // All scores are equal beside that number, so the two keys seen have the same weight.
  const double mean = (at(v, {2, 2, 5, 3}, 0, 0, 0, 0) + at(v, {2, 2, 5, 3}, 0, 0, 1, 0)) / 2;
  EXPECT_NEAR(values[0], mean, 1e-6);
}

TEST(Attention, HalfTypesComputeInF32) {
  const Sizes z;
  for (const DType dtype : {DType::bf16, DType::f16}) {
    const Tensor q = z.q(dtype), k = z.k(dtype), v = z.v(dtype);
    const Tensor y = attention(q, k, v, {.causal = true});
    EXPECT_EQ(y.dtype(), dtype);
    const Doubles expected = attention_loop(
        q, k, v, [](int64_t, int64_t, int64_t t, int64_t s) { return s <= t + 2 ? 0 : -kInf; },
        0.5);
    const Doubles values = to_doubles(y);
    for (size_t i = 0; i < values.size(); ++i) {
      // One rounding, at the end.
      EXPECT_NEAR(values[i], expected[i], 0.51 * ulp(dtype, expected[i]) + 1e-6) << i;
    }
  }
}

TEST(Attention, EmptyExtents) {
  const auto shape = [](const Sizes& z) {
    return attention(z.q(), z.k(), z.v(), {.causal = true}).eval().shape();
  };
  EXPECT_EQ(shape({.b = 0}), (Shape{0, 4, 3, 3}));
  EXPECT_EQ(shape({.h = 0}), (Shape{2, 0, 3, 3}));
  EXPECT_EQ(shape({.h = 0, .g = 0}), (Shape{2, 0, 3, 3}));
  EXPECT_EQ(shape({.t = 0}), (Shape{2, 4, 0, 3}));
  EXPECT_EQ(shape({.e = 0}), (Shape{2, 4, 3, 0}));
  check({.s = 0}, {}, no_bias);  // nothing to see: zeros
  const Sizes z = {.d = 0};      // all keys alike: their mean
  expect_near(attention(z.q(), z.k(), z.v()), attention_loop(z.q(), z.k(), z.v(), no_bias, 1));
}

TEST(Attention, DropoutDropsWeightsInTrainingOnly) {
  const int64_t keys = 2000;
  const Tensor q = zeros({1, 1, 1, 1}, DType::f64), k = zeros({1, 1, keys, 1}, DType::f64),
               v = ones({1, 1, keys, 1}, DType::f64).detach();
  const Random random(7);
  const AttentionOptions options = {.dropout = 0.25, .random = &random};
  {
    const ModeGuard evaluation(false);
    EXPECT_NEAR(attention(q, k, v, options).item(), 1, 1e-12);
  }
  const ModeGuard training(true);
  const Tensor y = attention(q, k, v, options);
  // The gradient of v is the weights: dropped ones are 0, kept ones are scaled up.
  double sum = 0, dropped = 0;
  for (const double weight : to_doubles(grad(tessera::sum(y), v))) {
    EXPECT_TRUE(weight == 0 || std::fabs(weight * double(keys) * 0.75 - 1) < 1e-6) << weight;
    sum += weight;
    dropped += weight == 0;
  }
  EXPECT_NEAR(y.item(), sum, 1e-9);
  EXPECT_NEAR(dropped / double(keys), 0.25, 0.04);
  EXPECT_NE(attention(q, k, v, options).item(), y.item());
}

// Keys and values shared by groups of heads are not repeated in memory: the products read them as
// they are, and nothing but scores, weights and scaled queries is stored.
TEST(Attention, SharedKeysAreNotCopied) {
  const Sizes z = {.b = 1, .h = 8, .g = 1, .t = 1, .s = 64, .d = 64, .e = 64};
  auto step =
      compile([](const Tensor& q, const Tensor& k, const Tensor& v) { return attention(q, k, v); });
  step(z.q(DType::f32), z.k(DType::f32), z.v(DType::f32));
  const Report& report = step.program().report;
  EXPECT_EQ(report.copies, 0);
  EXPECT_LE(report.kernels, 4);
  EXPECT_LE(report.temporary_bytes, 4 * (8 * 64 * 3));
}

TEST(AttentionError, Texts) {
  const Sizes z;
  const Tensor q = z.q(), k = z.k(), v = z.v();
  const auto text = [](const Tensor& a, const Tensor& b, const Tensor& c,
                       const AttentionOptions& options = {}) {
    return error_text([&] { attention(a, b, c, options); });
  };
  const std::string expected =
      "attention: expected q (B, H, T, D), k (B, G, S, D) and v (B, G, S, E), H a multiple of G, "
      "got ";
  EXPECT_EQ(text(q, ones({2, 2, 5, 3}), v),
            expected + "(2, 4, 3, 4), (2, 2, 5, 3) and (2, 2, 5, 3)");
  EXPECT_EQ(text(q, ones({2, 3, 5, 4}), ones({2, 3, 5, 3})),
            expected + "(2, 4, 3, 4), (2, 3, 5, 4) and (2, 3, 5, 3)");
  EXPECT_EQ(text(ones({3, 4}), k, v), expected + "(3, 4), (2, 2, 5, 4) and (2, 2, 5, 3)");
  EXPECT_EQ(
      text(q, k, v, {.mask = ones({4, 5})}),
      "attention: expected a mask that broadcasts to (B, H, T, S) = (2, 4, 3, 5), got (4, 5)");
  EXPECT_EQ(text(q, k, v, {.mask = tensor<int32_t>({1})}),
            "attention: expected a bool or floating-point mask, got i32");
  EXPECT_EQ(text(q, k, v, {.lengths = tensor<int32_t>({1})}),
            "attention: expected lengths (B) = (2,) of integers, got i32(1,)");
  EXPECT_EQ(text(q, k, v, {.lengths = ones({2})}),
            "attention: expected lengths (B) = (2,) of integers, got f32(2,)");
  EXPECT_EQ(text(q, k, v, {.dropout = 0.1}), "attention: dropout needs a Random to draw from");
}

// Rotary ----------------------------------------------------------------------------------------

// positions: one per row of x (…, D)
Doubles rotary_loop(const Tensor& x, const std::vector<int64_t>& positions, double base,
                    bool interleaved) {
  Doubles values = to_doubles(x);
  const size_t channels = size_t(x.size(-1));
  for (size_t row = 0; row * channels < values.size(); ++row) {
    for (size_t i = 0; i < channels / 2; ++i) {
      double& a = values[row * channels + (interleaved ? 2 * i : i)];
      double& b = values[row * channels + (interleaved ? 2 * i + 1 : i + channels / 2)];
      const double angle =
          double(positions[row]) * std::pow(base, -2 * double(i) / double(channels));
      const double turned = a * std::cos(angle) - b * std::sin(angle);
      b = b * std::cos(angle) + a * std::sin(angle);
      a = turned;
    }
  }
  return values;
}

TEST(Rotary, PositionsBroadcast) {
  const Tensor x = random_tensor({2, 3, 4, 6}, 51, DType::f64);
  for (const Shape& shape : {Shape{}, {4}, {1}, {3, 1}, {2, 1, 4}, {2, 3, 4}, {3, 4}}) {
    SCOPED_TRACE(to_string(shape));
    std::vector<int64_t> numbers;
    for (int64_t i = 0; i < numel(shape); ++i) numbers.push_back(7 * i + 3);
    const Tensor positions = tensor(numbers, shape);
    const std::vector<int64_t> rows = broadcast_to(positions, {2, 3, 4}).to_vector<int64_t>();
    for (const bool interleaved : {false, true}) {
      expect_near(rotary(x, positions, 10000, interleaved),
                  rotary_loop(x, rows, 10000, interleaved));
      expect_near(rotary(x, cast(positions, DType::u8), 500, interleaved),
                  rotary_loop(x, rows, 500, interleaved));
    }
  }
}

TEST(Rotary, FarPositionsInF32) {
  const Tensor x = random_tensor({3, 64}, 52);
  const std::vector<int64_t> positions = {0, 4000, 131071};
  // The angle's rounding is half a unit of the position's last place.
  expect_near(rotary(x, tensor(positions)), rotary_loop(x, positions, 10000, false), 2e-2);
  const Tensor near = slice(x, 0, 0, 2);
  expect_near(rotary(near, tensor<int64_t>({0, 4000})), rotary_loop(near, {0, 4000}, 10000, false),
              5e-4);
}

TEST(Rotary, DtypesAndEmpty) {
  const Tensor x = cast(random_tensor({5, 4}, 53), DType::bf16);
  const Tensor y = rotary(x, arange(5));
  EXPECT_EQ(y.dtype(), DType::bf16);
  expect_near(y, rotary_loop(x, {0, 1, 2, 3, 4}, 10000, false), 1.0 / 256);
  EXPECT_EQ(rotary(ones({0, 4}), arange(0)).shape(), (Shape{0, 4}));
  EXPECT_EQ(rotary(ones({2, 0}), arange(2)).shape(), (Shape{2, 0}));
}

TEST(Rotary, Gradients) {
  for (const bool interleaved : {false, true}) {
    expect_gradients([&](const Tensors& in) { return rotary(in[0], arange(3), 100, interleaved); },
                     {random_tensor({2, 3, 4}, 54, DType::f64)});
  }
}

TEST(Rotary, AnotherPositionCompilesNothing) {
  auto turn = compile([](const Tensor& x, const Tensor& position) { return rotary(x, position); });
  const Tensor x = random_tensor({1, 4}, 55);
  for (int64_t i = 0; i < 5; ++i) {
    expect_near(turn(x, scalar(i)), rotary_loop(x, {i}, 10000, false), 1e-6);
  }
  EXPECT_EQ(turn.stats().compilations, 1);
}

TEST(RotaryError, Texts) {
  EXPECT_EQ(error_text([] {
              rotary(ones({2, 3}), arange(2));
            }),
            "rotary: expected x (…, T, D) with an even D, got (2, 3)");
  EXPECT_EQ(error_text([] { rotary(ones({4}), arange(1)); }),
            "rotary: expected x (…, T, D) with an even D, got (4,)");
  EXPECT_EQ(error_text([] {
              rotary(ones({2, 4}), arange(3));
            }),
            "rotary: expected integer positions that broadcast to (2,) for (2, 4), got i64(3,)");
  EXPECT_EQ(error_text([] {
              rotary(ones({2, 4}), ones({2}));
            }),
            "rotary: expected integer positions that broadcast to (2,) for (2, 4), got f32(2,)");
  EXPECT_EQ(error_text([] {
              rotary(ones({2, 4}), arange(2), 0);
            }),
            "rotary: expected a base above 0, got 0");
}

}  // namespace
}  // namespace tessera
