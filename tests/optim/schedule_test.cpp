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

TEST(Schedules, ErrorsNameWhatIsWrong) {
  EXPECT_EQ(error_text([] { warmup_cosine({.warmup = 10, .total = 10}); }),
            "warmup_cosine: expected 0 <= warmup < total, got 10 and 10");
  EXPECT_EQ(error_text([] { warmup_cosine({.warmup = -1, .total = 10}); }),
            "warmup_cosine: expected 0 <= warmup < total, got -1 and 10");
}

}  // namespace
}  // namespace tessera
