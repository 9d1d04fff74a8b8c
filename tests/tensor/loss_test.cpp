// Losses against plain loops in f64.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/expect_error.h"
#include "tensor/differences.h"
#include "tessera/tensor/compiled.h"

namespace tessera {
namespace {

using Doubles = std::vector<double>;
using Tensors = std::vector<Tensor>;
using Targets = std::vector<int64_t>;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr Reduction kReductions[] = {Reduction::mean, Reduction::sum, Reduction::none};

double total(const Doubles& values) {
  double sum = 0;
  for (const double v : values) sum += v;
  return sum;
}

Doubles reduced(const Doubles& loss, Reduction reduction) {
  if (reduction == Reduction::none) return loss;
  return {total(loss) / (reduction == Reduction::mean ? double(loss.size()) : 1)};
}

// Losses of classes -----------------------------------------------------------------------------

struct ClassCase {
  Targets targets;
  std::optional<int64_t> ignore = {};
  double smoothing = 0;
  Doubles weights = {};
};

// Rows of log-probabilities, from logits (N, C).
Doubles log_probabilities(const Doubles& x, size_t classes) {
  Doubles result(x.size());
  for (size_t row = 0; row < x.size(); row += classes) {
    double sum = 0;
    for (size_t c = 0; c < classes; ++c) sum += std::exp(x[row + c]);
    for (size_t c = 0; c < classes; ++c) result[row + c] = x[row + c] - std::log(sum);
  }
  return result;
}

Doubles class_loop(const Doubles& log_p, size_t classes, const ClassCase& c, Reduction reduction) {
  Doubles loss;
  double counted = 0;
  for (size_t i = 0; i < c.targets.size(); ++i) {
    const int64_t target = c.targets[i];
    if (c.ignore == target) {
      loss.push_back(0);
      continue;
    }
    const auto weight = [&](size_t k) { return c.weights.empty() ? 1 : c.weights[k]; };
    double spread = 0;
    for (size_t k = 0; k < classes; ++k) spread -= weight(k) * log_p[i * classes + k];
    const double own = -weight(size_t(target)) * log_p[i * classes + size_t(target)];
    loss.push_back((1 - c.smoothing) * own + c.smoothing / double(classes) * spread);
    counted += weight(size_t(target));
  }
  if (reduction == Reduction::mean) return {total(loss) / counted};
  return reduced(loss, reduction);
}

CrossEntropyOptions options_of(const ClassCase& c, Reduction reduction = Reduction::mean) {
  CrossEntropyOptions options;
  options.reduction = reduction;
  options.ignore_index = c.ignore;
  options.label_smoothing = c.smoothing;
  if (!c.weights.empty()) options.weights = tensor(c.weights);
  return options;
}

const Tensor& logits() {
  static const Tensor x = random_tensor({6, 4}, 21, DType::f64, -3, 3);
  return x;
}

const std::vector<ClassCase>& class_cases() {
  const Targets plain = {3, 0, 2, 2, 1, 3}, some = {3, -100, 2, 2, -100, 1};
  const Doubles weights = {0.5, 2, 0.25, 1.5};
  static const std::vector<ClassCase> cases = {
      {plain},
      {plain, -100},
      {some, -100},
      {plain, 2},  // a class of its own may be the ignored one
      {plain, {}, 0.1},
      {some, -100, 0.3},
      {plain, {}, 0, weights},
      {some, -100, 0, weights},
      {plain, {}, 0.2, weights},
      {some, -100, 0.2, weights},
      {plain, {}, 1, weights},
  };
  return cases;
}

TEST(CrossEntropy, EveryCombination) {
  for (const ClassCase& c : class_cases()) {
    for (const Reduction reduction : kReductions) {
      SCOPED_TRACE(cat("smoothing ", c.smoothing, ", weights ", c.weights.size(), ", ignored ",
                       c.ignore.value_or(0), ", reduction ", int(reduction)));
      const Doubles expected =
          class_loop(log_probabilities(to_doubles(logits()), 4), 4, c, reduction);
      const CrossEntropyOptions options = options_of(c, reduction);
      expect_near(cross_entropy(logits(), tensor(c.targets), options), expected);
      // The same of more than one axis of rows.
      expect_near(cross_entropy(reshape(logits(), {2, 3, 4}), tensor(c.targets, {2, 3}), options),
                  expected);
      if (c.smoothing > 0) continue;
      expect_near(nll_loss(log_softmax(logits()), tensor(c.targets), options), expected);
    }
  }
}

TEST(CrossEntropy, Gradients) {
  for (const ClassCase& c : class_cases()) {
    SCOPED_TRACE(cat("smoothing ", c.smoothing, ", weights ", c.weights.size()));
    expect_gradients(
        [&](const Tensors& in) { return cross_entropy(in[0], tensor(c.targets), options_of(c)); },
        {logits()});
  }
  const ClassCase c = {{3, -1, 2, 2, -1, 1}, -1, 0, {0.5, 2, 0.25, 1.5}};
  expect_gradients(
      [&](const Tensors& in) { return nll_loss(in[0], tensor(c.targets), options_of(c)); },
      {logits()});
}

TEST(CrossEntropy, IgnoredRowsHaveNoGradient) {
  const ClassCase c = {{3, -100, 2, 2, -100, 1}, -100};
  const Doubles g =
      to_doubles(grad(cross_entropy(logits(), tensor(c.targets), options_of(c)), logits()));
  for (size_t i = 0; i < g.size(); ++i) {
    EXPECT_EQ(g[i] == 0, c.targets[i / 4] == -100) << i;
  }
}

TEST(CrossEntropy, IfAllRowsAreIgnoredTheMeanIsNaN) {
  const ClassCase c = {Targets(6, -100), -100};
  EXPECT_TRUE(std::isnan(cross_entropy(logits(), tensor(c.targets), options_of(c)).item()));
  EXPECT_EQ(cross_entropy(logits(), tensor(c.targets), options_of(c, Reduction::sum)).item(), 0);
  const Tensor no_rows = zeros({0, 4}), no_targets = tensor(Targets{});
  EXPECT_TRUE(std::isnan(cross_entropy(no_rows, no_targets).item()));
  EXPECT_EQ(cross_entropy(no_rows, no_targets, options_of(c, Reduction::none)).shape(), (Shape{0}));
}

TEST(CrossEntropy, DtypesOfTargetsAndLogits) {
  const Targets targets = {3, 0, 2, 2, 1, 3};
  const double expected = cross_entropy(logits(), tensor(targets)).item();
  for (const DType dtype : {DType::i8, DType::u8, DType::i32, DType::u32}) {
    const Tensor t = cast(tensor(targets), dtype);
    EXPECT_EQ(cross_entropy(logits(), t).item(), expected);
    EXPECT_EQ(cross_entropy(logits(), t, options_of({targets, -100})).item(), expected);
  }
  for (const DType dtype : {DType::bf16, DType::f16}) {
    const Tensor half = cast(logits(), dtype);
    const Tensor loss = cross_entropy(half, tensor(targets), options_of({targets, {}, 0.1}));
    EXPECT_EQ(loss.dtype(), DType::f32);
    expect_near(
        loss,
        class_loop(log_probabilities(to_doubles(half), 4), 4, {targets, {}, 0.1}, Reduction::mean),
        1e-6);
    EXPECT_EQ(nll_loss(half, tensor(targets)).dtype(), DType::f32);
  }
  expect_near(cross_entropy(tensor<double>({1, 1}), scalar(int64_t{1})), {std::log(2.0)});
}

TEST(CrossEntropy, LargeLogitsAndClassesMaskedByInfinity) {
  expect_near(cross_entropy(tensor<float>({1000, 0, -1000, 0}, {2, 2}), tensor<int64_t>({1, 0}),
                            {.reduction = Reduction::none}),
              {1000, 1000});
  const Tensor masked = tensor<double>({0, -kInf, 0}, {1, 3});
  expect_near(cross_entropy(masked, tensor<int64_t>({2})), {std::log(2.0)});
  const Doubles g = to_doubles(grad(cross_entropy(masked, tensor<int64_t>({2})), masked));
  EXPECT_EQ(g, (Doubles{0.5, 0, -0.5}));
}

TEST(CrossEntropyError, Texts) {
  const Tensor t = tensor(Targets(6, 1));
  EXPECT_EQ(error_text([&] { cross_entropy(logits(), tensor(Targets{1})); }),
            "cross_entropy: expected logits (…, C) and targets (…), got (6, 4) and (1,)");
  EXPECT_EQ(error_text([&] { nll_loss(scalar(1.0), scalar(int64_t{1})); }),
            "nll_loss: expected logits (…, C) and targets (…), got () and ()");
  EXPECT_EQ(error_text([&] { cross_entropy(logits(), ones({6})); }),
            "cross_entropy: expected integer targets, got f32");
  EXPECT_EQ(error_text([&] { cross_entropy(logits(), t, {.weights = ones({3})}); }),
            "cross_entropy: expected weights of (4,) for (6, 4), got (3,)");
  EXPECT_EQ(error_text([&] { cross_entropy(logits(), t, {.label_smoothing = 1.5}); }),
            "cross_entropy: expected label_smoothing from 0 to 1, got 1.5");
  EXPECT_EQ(error_text([&] { nll_loss(logits(), t, {.label_smoothing = 0.5}); }),
            "nll_loss: expected label_smoothing of 0, got 0.5");
}

TEST(CrossEntropyError, ATargetOutOfRangeIsFoundAtEvaluation) {
  for (const int64_t wrong : {-1, 4, -100}) {
    const Tensor loss = cross_entropy(logits(), tensor(Targets{0, 1, wrong, 3, 0, 1}));
    const std::string text = error_text([&] { loss.eval(); });
    EXPECT_NE(text.find(cat("index ", wrong)), std::string::npos) << text;
    // Another number is ignored.
    const Tensor other =
        cross_entropy(logits(), tensor(Targets{0, 1, wrong, 3, 0, 1}), {.ignore_index = -7});
    EXPECT_NE(error_text([&] { other.eval(); }), "");
  }
}

// Losses of elements ----------------------------------------------------------------------------

const Tensor& prediction() {
  static const Tensor x = random_tensor({3, 4}, 31, DType::f64, -3, 3);
  return x;
}

const Tensor& truth() {
  static const Tensor x = random_tensor({3, 4}, 32, DType::f64, 0, 1);
  return x;
}

template <class Loss, class Loop>
void check_elements(Loss loss, Loop loop, const Tensor& x = prediction(),
                    const Tensor& t = truth()) {
  const Doubles a = to_doubles(x), b = to_doubles(t);
  Doubles expected;
  for (size_t i = 0; i < a.size(); ++i) expected.push_back(loop(a[i], b[i]));
  for (const Reduction reduction : kReductions) {
    SCOPED_TRACE(int(reduction));
    expect_near(loss(x, t, reduction), reduced(expected, reduction));
    const Tensor half_x = cast(x, DType::bf16), half_t = cast(t, DType::bf16);
    EXPECT_EQ(loss(half_x, half_t, reduction).dtype(), DType::f32);
  }
  expect_gradients([&](const Tensors& in) { return loss(in[0], in[1], Reduction::mean); }, {x, t});
  EXPECT_TRUE(std::isnan(loss(ones({0, 3}), ones({0, 3}), Reduction::mean).item()));
  EXPECT_EQ(loss(ones({0, 3}), ones({0, 3}), Reduction::sum).item(), 0);
}

TEST(Losses, MeanSquare) {
  check_elements([](In x, In t, Reduction r) { return mse_loss(x, t, r); },
                 [](double x, double t) { return (x - t) * (x - t); });
  EXPECT_EQ(mse_loss(tensor<int32_t>({1, 5}), tensor<int32_t>({2, 3})).item(), 2.5);
  // In f16 the squares would overflow.
  EXPECT_EQ(mse_loss(full({3}, 1000, DType::f16), zeros({3}, DType::f16)).item(), 1e6);
}

TEST(Losses, MeanDistance) {
  check_elements([](In x, In t, Reduction r) { return l1_loss(x, t, r); },
                 [](double x, double t) { return std::fabs(x - t); });
  const Tensor x = tensor<double>({2, 3, 1});  // the first one equals its target
  EXPECT_EQ(to_doubles(grad(l1_loss(x, full({3}, 2, DType::f64), Reduction::sum), x)),
            (Doubles{0, 1, -1}));
}

TEST(Losses, Huber) {
  for (const double delta : {0.5, 1.0, 10.0}) {
    check_elements([&](In x, In t, Reduction r) { return huber_loss(x, t, delta, r); },
                   [&](double x, double t) {
                     const double d = std::fabs(x - t);
                     return d <= delta ? d * d / 2 : delta * (d - delta / 2);
                   });
  }
  const Tensor x = tensor<double>({kInf, -1e200, 0, 1, 2}), zero = zeros({5}, DType::f64);
  const Tensor loss = huber_loss(x, zero, 1, Reduction::sum);
  EXPECT_EQ(to_doubles(grad(loss, x)), (Doubles{1, -1, 0, 1, 1}));
  EXPECT_EQ(to_doubles(grad(sum(grad(loss, x)), x)), (Doubles{0, 0, 1, 1, 0}));
}

double softplus_of(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x))); }

TEST(Losses, BinaryCrossEntropy) {
  const auto loop = [](double x, double t) {
    return t * softplus_of(-x) + (1 - t) * softplus_of(x);
  };
  const auto loss = [](In x, In t, Reduction r) { return bce_with_logits(x, t, r); };
  check_elements(loss, loop);
  // Also at 0, where |x| has a corner, and far out.
  check_elements(loss, loop, tensor<double>({0, 0, 0, 50, -50, 1e-9}),
                 tensor<double>({0, 0.25, 1, 1, 0, 0.5}));
  const Tensor far = tensor<float>({1000, 1000, -1000, -1000, 20, -20}),
               t = tensor<float>({0, 1, 0, 1, 1, 0});
  expect_near(bce_with_logits(far, t, Reduction::none),
              {1000, 0, 0, 1000, std::log1p(std::exp(-20.0)), std::log1p(std::exp(-20.0))}, 1e-6);
  expect_near(grad(bce_with_logits(far, t, Reduction::sum), far),
              {1, 0, 0, -1, -std::exp(-20.0), std::exp(-20.0)}, 1e-7);
  const std::vector<float> tiny = bce_with_logits(far, t, Reduction::none).to_vector<float>();
  EXPECT_NEAR(tiny[4] / std::exp(-20.0), 1, 1e-5);
  EXPECT_NEAR(tiny[5] / std::exp(-20.0), 1, 1e-5);
}

TEST(Losses, BinaryCrossEntropyWithPositiveWeights) {
  const Doubles weights = {0.5, 1, 2, 4};
  size_t column = 0;
  check_elements(
      [&](In x, In t, Reduction r) {
        if (x.numel() == 0) return bce_with_logits(x, t, r, scalar(2.0f));
        return bce_with_logits(x, t, r, tensor(weights));
      },
      [&](double x, double t) {
        const double weight = weights[column++ % 4];
        return weight * t * softplus_of(-x) + (1 - t) * softplus_of(x);
      });
}

TEST(Losses, KullbackLeibler) {
  const auto loop = [](double q, double p) { return p == 0 ? 0 : p * (std::log(p) - q); };
  check_elements([](In q, In p, Reduction r) { return kl_div(q, p, r); }, loop);
  check_elements([](In q, In p, Reduction r) { return kl_div(q, p, r, true); },
                 [](double q, double p) { return std::exp(p) * (p - q); });
  const Tensor q = tensor<double>({-1, -kInf, -2}), p = tensor<double>({0, 0, 0.5});
  const double last = 0.5 * (std::log(0.5) + 2);
  for (const bool log_target : {false, true}) {
    SCOPED_TRACE(log_target);
    const Tensor target = log_target ? tensor<double>({-kInf, -kInf, std::log(0.5)}) : p;
    expect_near(kl_div(q, target, Reduction::none, log_target), {0, 0, last});
    const Tensors g = grad(kl_div(q, target, Reduction::sum, log_target), Tensors{q, target});
    expect_near(g[0], {0, 0, -0.5});
    const double slope = std::log(0.5) + 1 + 2;
    expect_near(g[1], {0, 0, log_target ? 0.5 * slope : slope});
  }
}

TEST(LossesError, Texts) {
  const Tensor a = ones({3}), b = ones({3, 1});
  EXPECT_EQ(error_text([&] { mse_loss(a, b); }),
            "mse_loss: expected operands of one shape, got (3,) and (3, 1)");
  EXPECT_EQ(error_text([&] { l1_loss(a, b); }),
            "l1_loss: expected operands of one shape, got (3,) and (3, 1)");
  EXPECT_EQ(error_text([&] { huber_loss(a, b); }),
            "huber_loss: expected operands of one shape, got (3,) and (3, 1)");
  EXPECT_EQ(error_text([&] { bce_with_logits(a, b); }),
            "bce_with_logits: expected operands of one shape, got (3,) and (3, 1)");
  EXPECT_EQ(error_text([&] { kl_div(a, b); }),
            "kl_div: expected operands of one shape, got (3,) and (3, 1)");
  EXPECT_EQ(error_text([&] { huber_loss(a, a, 0); }), "huber_loss: expected delta above 0, got 0");
  EXPECT_EQ(error_text([&] { bce_with_logits(a, a, Reduction::mean, b); }),
            "bce_with_logits: expected positive_weight to broadcast to (3,), got (3, 1)");
}

}  // namespace
}  // namespace tessera
