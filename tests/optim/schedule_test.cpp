#include "tessera/optim/schedule.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/expect_error.h"

namespace tessera {
namespace {

TEST(Schedules, ConstantIsConstant) {
  const Schedule schedule = constant_lr(0.25);
  EXPECT_EQ(schedule(0), 0.25);
  EXPECT_EQ(schedule(1'000'000), 0.25);
}

TEST(Schedules, WarmupCosineValues) {
  const Schedule schedule = warmup_cosine({.peak = 1, .warmup = 4, .total = 12, .floor = 0.2});
  EXPECT_DOUBLE_EQ(schedule(0), 0.25);
  EXPECT_DOUBLE_EQ(schedule(1), 0.5);
  EXPECT_DOUBLE_EQ(schedule(3), 1);
  EXPECT_DOUBLE_EQ(schedule(4), 1);
  EXPECT_DOUBLE_EQ(schedule(6), 0.2 + 0.8 * (1 + std::sqrt(0.5)) / 2);
  EXPECT_DOUBLE_EQ(schedule(8), 0.6);
  EXPECT_NEAR(schedule(12), 0.2, 1e-15);
  EXPECT_NEAR(schedule(100), 0.2, 1e-15);
}

TEST(Schedules, WarmupMayBeAbsent) {
  const Schedule schedule = warmup_cosine({.peak = 2, .warmup = 0, .total = 10});
  EXPECT_EQ(schedule(0), 2);
  EXPECT_DOUBLE_EQ(schedule(5), 1);
}

TEST(Schedules, StayAtTheirEnd) {
  EXPECT_EQ(linear_lr(1, 0.5, 10)(10), 0.5);
  EXPECT_EQ(linear_lr(1, 0.5, 10)(1000), 0.5);
  EXPECT_NEAR(cosine_lr({.peak = 1, .total = 10, .floor = 0.25})(1000), 0.25, 1e-15);
  const Schedule cycle = one_cycle_lr({.peak = 1, .total = 10});
  EXPECT_EQ(cycle(9), cycle(1000));
  EXPECT_NEAR(cycle(9), 1 / 25.0 / 1e4, 1e-12);
}

TEST(Schedules, APlateauGoesOnFromItsState) {
  const PlateauOptions options{.lr = 1, .factor = 0.5, .patience = 2, .cooldown = 1};
  Plateau whole(options), first(options), second(options);
  for (int i = 0; i < 20; ++i) {
    const double loss = i < 4 ? 4 - i : 1;
    whole(loss);
    (i < 9 ? first : second)(loss);
    if (i == 8) second.set_state(first.state());
  }
  EXPECT_EQ(second.state(), whole.state());
  EXPECT_LT(whole.lr(), 0.2);
  EXPECT_NE(first.state(), whole.state());
}

TEST(Schedules, ErrorsNameWhatIsWrong) {
  EXPECT_EQ(error_text([] { warmup_cosine({.warmup = 10, .total = 10}); }),
            "warmup_cosine: expected 0 <= warmup < total, got 10 and 10");
  EXPECT_EQ(error_text([] { warmup_cosine({.warmup = -1, .total = 10}); }),
            "warmup_cosine: expected 0 <= warmup < total, got -1 and 10");
  EXPECT_EQ(error_text([] { linear_lr(1, 0, 0); }),
            "linear_lr: expected a total of at least 1 step, got 0");
  EXPECT_EQ(error_text([] { step_lr(1, 0, 0.5); }),
            "step_lr: expected a stretch of at least 1 step, got 0");
  EXPECT_EQ(error_text([] { exponential_lr(1, 0); }),
            "exponential_lr: expected a finite factor above 0, got 0");
  EXPECT_EQ(error_text([] { one_cycle_lr({.total = 3}); }),
            "one_cycle_lr: expected a rise of more than one step that ends before the last, got "
            "0.3 of 3");
  EXPECT_EQ(error_text([] { one_cycle_lr({.total = 30, .start_divisor = 0}); }),
            "one_cycle_lr: expected divisors above 0, got 0 and 10000");
  EXPECT_EQ(error_text([] { warmup(-1, constant_lr(1)); }),
            "warmup: expected at least 0 steps, got -1");
  EXPECT_EQ(error_text([] { Plateau({.factor = 1}); }),
            "Plateau: expected a factor between 0 and 1, got 1");
  EXPECT_EQ(error_text([] { Plateau({.patience = -1}); }),
            "Plateau: expected a patience and a cooldown of at least 0, got -1 and 0");
}

}  // namespace
}  // namespace tessera
