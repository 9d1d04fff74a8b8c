// The optimisers and schedules that options of `tessera train` choose, by their formulae.
#include "tessera/cli/train_parts.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "support/expect_error.h"
#include "tessera/cli/options.h"
#include "tessera/tensor/ops.h"

namespace tessera::cli {
namespace {

using Words = std::vector<std::string>;

TrainConfig config_of(const Words& words) {
  TrainConfig config;
  read_flags(parse_arguments("train", train_config_options(), words), config);
  return config;
}

// Values of a weight, a bias and a gain after two steps with gradients of 0.5 and -0.25.
std::vector<double> two_steps(const Words& words) {
  const Var weight(full({}, 2, DType::f64), "w"), bias(full({}, 2, DType::f64), "b"),
      gain(full({}, 2, DType::f64), "g");
  const auto optimizer = make_optimizer(
      config_of(words), std::vector<NamedVar>{{"w", weight}, {"h.bias", bias}, {"ln_1.g", gain}});
  for (const double grad : {0.5, -0.25}) {
    for (const Var& var : {weight, bias, gain}) var.set_grad(full({}, grad, DType::f64));
    optimizer->step();
  }
  return {weight.value().item(), bias.value().item(), gain.value().item()};
}

// `step(x, g, t)` gives the new value of a weight; `decay` is 0 for the other two.
template <class Step>
void expect_steps(const Words& words, double decay, const Step& make_step) {
  const std::vector<double> values = two_steps(words);
  for (size_t i = 0; i < 3; ++i) {
    auto step = make_step(i == 0 ? decay : 0);
    double x = 2;
    x = step(x, 0.5, 1);
    x = step(x, -0.25, 2);
    EXPECT_NEAR(values[i], x, 1e-12) << words[1] << " " << i;
  }
}

auto adam(double decay, bool decoupled) {
  return [=, m = 0.0, v = 0.0](double x, double g, int t) mutable {
    if (!decoupled) g += decay * x;
    if (decoupled) x -= 0.1 * decay * x;
    m = 0.8 * m + 0.2 * g;
    v = 0.95 * v + 0.05 * g * g;
    const double root = std::sqrt(v / (1 - std::pow(0.95, t)));
    return x - 0.1 * (m / (1 - std::pow(0.8, t))) / (root + 1e-3);
  };
}

TEST(TrainParts, OptimisersGetTheirOptions) {
  const Words betas = {"--lr", "0.1", "--beta1", "0.8", "--beta2", "0.95", "--epsilon", "1e-3"};
  const auto with = [](Words words, const Words& more) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  expect_steps(with({"--optimizer", "adamw"}, betas), 0.1,
               [](double decay) { return adam(decay, true); });
  expect_steps(with({"--optimizer", "adam", "--weight-decay", "0.3"}, betas), 0.3,
               [](double decay) { return adam(decay, false); });
  expect_steps({"--optimizer", "adam", "--lr", "0.1", "--beta1", "0.8", "--beta2", "0.95",
                "--epsilon", "1e-3"},
               0, [](double decay) { return adam(decay, false); });
  const auto sgd = [](double decay) {
    return [decay, m = 0.0](double x, double g, int) mutable {
      g += decay * x;
      m = 0.9 * m + g;
      return x - 0.1 * (g + 0.9 * m);
    };
  };
  expect_steps({"--optimizer", "sgd", "--lr", "0.1", "--momentum", "0.9", "--nesterov",
                "--weight-decay", "0.2"},
               0.2, sgd);
  const auto dampened = [](double) {
    return [m = 0.0](double x, double g, int t) mutable {
      m = t == 1 ? g : 0.9 * m + 0.75 * g;
      return x - 0.1 * m;
    };
  };
  expect_steps({"--optimizer", "sgd", "--lr", "0.1", "--momentum", "0.9", "--dampening", "0.25"}, 0,
               dampened);
  const auto rmsprop = [](double decay) {
    return [decay, v = 0.0, a = 0.0, b = 0.0](double x, double g, int) mutable {
      g += decay * x;
      v = 0.9 * v + 0.1 * g * g;
      a = 0.9 * a + 0.1 * g;
      b = 0.5 * b + g / (std::sqrt(v - a * a) + 1e-3);
      return x - 0.1 * b;
    };
  };
  expect_steps({"--optimizer", "rmsprop", "--lr", "0.1", "--alpha", "0.9", "--epsilon", "1e-3",
                "--momentum", "0.5", "--centered", "--weight-decay", "0.2"},
               0.2, rmsprop);
}

TEST(TrainParts, F16AndDebuggingSkipWhatIsNotFinite) {
  const Var w(ones({2}), "w");
  const auto skips = [&](const Words& words) {
    const std::vector<NamedVar> named = {{"h.bias", w}, {"ln_1.w", Var(ones({2}), "v")}};
    return make_optimizer(config_of(words), named)->skips_nonfinite();
  };
  for (const char* name : {"adamw", "adam", "sgd", "rmsprop"}) {
    EXPECT_FALSE(skips({"--optimizer", name, "--dtype", "bf16"}));
    EXPECT_TRUE(skips({"--optimizer", name, "--dtype", "f16"}));
    EXPECT_TRUE(skips({"--optimizer", name, "--debug-nan"}));
  }
  EXPECT_TRUE(scales_loss(config_of({"--dtype", "f16"})));
  EXPECT_FALSE(scales_loss(config_of({"--dtype", "bf16"})));
}

// Rates at the steps 0, 5, 10, 55 and 100 of 100.
std::vector<double> rates(Words words) {
  words.insert(words.end(), {"--lr", "0.8", "--min-lr", "0.2", "--steps", "100"});
  const Schedule schedule = make_schedule(config_of(words));
  std::vector<double> result;
  for (const int64_t step : {0, 5, 10, 55, 100}) result.push_back(schedule(step));
  return result;
}

void expect_rates(const Words& words, const std::vector<double>& expected) {
  const std::vector<double> result = rates(words);
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(result[i], expected[i], 1e-12) << words.back() << " " << i;
  }
}

TEST(TrainParts, SchedulesGetTheirOptions) {
  const auto ten = [](const Words& more) {
    Words words = {"--warmup", "10", "--schedule"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  const double first = 0.08, fifth = 0.48;  // of the warm-up
  expect_rates(ten({"constant"}), {first, fifth, 0.8, 0.8, 0.8});
  expect_rates(ten({"plateau"}), {first, fifth, 0.8, 0.8, 0.8});
  expect_rates(ten({"linear"}), {first, fifth, 0.8, 0.5, 0.2});
  expect_rates(ten({"cosine"}), {first, fifth, 0.8, 0.5, 0.2});
  expect_rates(ten({"step", "--lr-every", "40"}), {first, fifth, 0.8, 0.08, 0.008});
  expect_rates(ten({"step", "--lr-every", "40", "--lr-factor", "0.5"}),
               {first, fifth, 0.8, 0.4, 0.2});
  expect_rates(ten({"exponential"}), {first, fifth, 0.8, 0.4, 0.2});
  expect_rates(ten({"exponential", "--lr-factor", "0.99"}),
               {first, fifth, 0.8, 0.8 * std::pow(0.99, 45), 0.8 * std::pow(0.99, 90)});
  // Up to step 9 and down to step 99 of 100, along half cosines; without a warm-up of its own.
  const auto half_cosine = [](double from, double to, double share) {
    return to + (from - to) * (1 + std::cos(std::numbers::pi * share)) / 2;
  };
  expect_rates(
      {"--rise", "0.1", "--start-divisor", "4", "--end-divisor", "2", "--schedule", "one-cycle"},
      {0.2, half_cosine(0.2, 0.8, 5.0 / 9), half_cosine(0.8, 0.1, 1.0 / 90),
       half_cosine(0.8, 0.1, 46.0 / 90), 0.1});
  EXPECT_NEAR(make_schedule(config_of({"--lr", "1"}))(0), 1.0 / 20, 1e-15);
}

TEST(TrainParts, PlateauGetsItsOptions) {
  EXPECT_FALSE(make_plateau(config_of({})).has_value());
  auto plateau = make_plateau(config_of({"--schedule", "plateau", "--lr", "0.8", "--min-lr", "0.3",
                                         "--lr-factor", "0.5", "--patience", "1", "--cooldown", "1",
                                         "--threshold", "0.1"}))
                     .value();
  // 0.95 and 0.92 are no progress beyond a tenth; one more value is let off; the floor holds.
  const double losses[] = {1, 0.95, 0.92, 0.92, 0.92, 0.92, 0.92};
  const double expected[] = {0.8, 0.8, 0.4, 0.4, 0.4, 0.3, 0.3};
  for (size_t i = 0; i < 7; ++i) EXPECT_DOUBLE_EQ(plateau(losses[i]), expected[i]) << i;
}

TEST(TrainPartsErrors, SayWhatIsMissing) {
  EXPECT_EQ(
      error_text([] {
        make_schedule(config_of({"--schedule", "exponential", "--min-lr", "0"}));
      }),
      "train: --schedule exponential expects --lr-factor, or rates above 0 to go between, got "
      "--lr 0.001 and --min-lr 0");
  EXPECT_EQ(error_text([] {
              make_plateau(config_of({"--schedule", "plateau", "--eval-every", "0"}));
            }),
            "train: --schedule plateau expects --held-out and --eval-every above 0, got 0.1 and 0");
}

}  // namespace
}  // namespace tessera::cli
