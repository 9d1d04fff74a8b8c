// Random numbers: equal bits everywhere, one stream for plain and compiled draws, right moments.
#include "tessera/tensor/random.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/expect_error.h"
#include "support/reference.h"
#include "tessera/base/philox.h"
#include "tessera/tensor/compiled.h"
#include "tessera/tensor/ops.h"

namespace tessera {
namespace {

std::vector<float> philox_numbers(int64_t n, int64_t key, int64_t offset) {
  std::vector<float> result;
  for (int64_t i = 0; i < n; ++i) result.push_back(philox_uniform(i, key, offset));
  return result;
}

TEST(Random, UniformIsPhilox) {
  const Random random(42);
  EXPECT_EQ(random.uniform({3, 7}).to_vector<float>(), philox_numbers(21, 42, 0));
  // 21 numbers use up 6 counters of four.
  EXPECT_EQ(random.uniform({1001}).to_vector<float>(), philox_numbers(1001, 42, 6));
  EXPECT_EQ(random.counter().value().item(), 6 + 251);
}

TEST(Random, ADrawKeepsItsNumbersHoweverLateItIsRead) {
  const Random random(5);
  const Tensor early = random.uniform({8}), late = random.uniform({8});
  EXPECT_EQ(late.to_vector<float>(), philox_numbers(8, 5, 2));
  EXPECT_EQ(early.to_vector<float>(), philox_numbers(8, 5, 0));
}

TEST(Random, EqualSeedsDrawEqualNumbers) {
  EXPECT_EQ(Random(3).normal({9}).to_vector<float>(), Random(3).normal({9}).to_vector<float>());
  EXPECT_NE(Random(3).normal({9}).to_vector<float>(), Random(4).normal({9}).to_vector<float>());
}

TEST(Random, PlainAndCompiledDrawsAreOneStream) {
  const Random random(9);
  const auto draw = compile([&](const Tensor& shift) { return random.uniform({6}) + shift; });
  const Tensor zero = scalar(0.0f);
  EXPECT_EQ(random.uniform({6}).to_vector<float>(), philox_numbers(6, 9, 0));
  EXPECT_EQ(draw(zero).to_vector<float>(), philox_numbers(6, 9, 2));
  EXPECT_EQ(draw(zero).to_vector<float>(), philox_numbers(6, 9, 4));
  EXPECT_EQ(random.uniform({6}).to_vector<float>(), philox_numbers(6, 9, 6));
  EXPECT_EQ(draw(zero).to_vector<float>(), philox_numbers(6, 9, 8));
  EXPECT_EQ(draw.stats().compilations, 1);
}

TEST(Random, TwoDrawsInOneStepDiffer) {
  const Random random(9);
  const auto draw = compile([&](const Tensor& x) {
    return stack({random.uniform({4}) + x, random.uniform({4}) + x});
  });
  const std::vector<float> both = draw(scalar(0.0f)).to_vector<float>();
  EXPECT_EQ(both, philox_numbers(8, 9, 0));
}

TEST(Random, ResumingFromTheCounterRepeats) {
  const Random random(1);
  random.uniform({100}).eval();
  const int64_t counter = int64_t(random.counter().value().item());
  const std::vector<float> expected = random.uniform({5}).to_vector<float>();
  const Random resumed(1);
  resumed.counter().set(counter);
  EXPECT_EQ(resumed.uniform({5}).to_vector<float>(), expected);
}

TEST(Random, UniformRange) {
  const std::vector<float> values = Random(2).uniform({10000}, -3, 5).to_vector<float>();
  double sum = 0;
  for (const float v : values) {
    EXPECT_GE(v, -3);
    EXPECT_LT(v, 5);
    sum += double(v);
  }
  EXPECT_NEAR(sum / 10000, 1, 0.1);  // 4 standard errors are 0.092
}

TEST(Random, NormalMoments) {
  const Tensor x = Random(2).normal({100000}, 1, 2);
  const Tensor z = (x - 1) / 2;
  EXPECT_NEAR(mean(z).item(), 0, 0.015);
  EXPECT_NEAR(mean(z * z).item(), 1, 0.02);
  EXPECT_NEAR(mean(z * z * z).item(), 0, 0.05);
  EXPECT_NEAR(mean(z * z * z * z).item(), 3, 0.15);
  EXPECT_EQ(sum(is_finite(x)).item(), 100000);
}

TEST(Random, Bernoulli) {
  const Tensor hits = Random(2).bernoulli({10000}, 0.3);
  EXPECT_EQ(hits.dtype(), DType::boolean);
  EXPECT_NEAR(sum(hits).item() / 10000, 0.3, 0.02);
  EXPECT_EQ(sum(Random(2).bernoulli({100}, 0)).item(), 0);
  EXPECT_EQ(sum(Random(2).bernoulli({100}, 1)).item(), 100);
}

TEST(Random, DropoutScalesWhatItKeeps) {
  const Tensor y = Random(2).dropout(full({10000}, 3), 0.25);
  int64_t kept = 0;
  for (const float v : y.to_vector<float>()) {
    EXPECT_TRUE(v == 0 || v == 4) << v;
    kept += v != 0;
  }
  EXPECT_NEAR(double(kept) / 10000, 0.75, 0.02);
}

TEST(Random, DropoutIsTheIdentityOutsideTraining) {
  const Random random(2);
  const Tensor x = full({100}, 3);
  EXPECT_EQ(random.dropout(x, 0).value(), x.value());
  {
    const ModeGuard evaluation(false);
    EXPECT_FALSE(is_training());
    EXPECT_EQ(random.dropout(x, 0.5).value(), x.value());
    EXPECT_EQ(random.counter().value().item(), 0);
  }
  EXPECT_TRUE(is_training());
  EXPECT_NE(random.dropout(x, 0.5).value(), x.value());
}

TEST(Random, TheModeIsPartOfWhatACompiledFunctionIs) {
  const Random random(2);
  const auto drop = compile([&](const Tensor& x) { return random.dropout(x, 0.5); });
  const Tensor x = full({1000}, 1);
  EXPECT_LT(sum(drop(x) == 1).item(), 1000);
  const ModeGuard evaluation(false);
  EXPECT_EQ(sum(drop(x) == 1).item(), 1000);
  EXPECT_EQ(drop.stats().compilations, 2);
}

TEST(RandomError, Texts) {
  const Random random(2);
  EXPECT_EQ(error_text([&] { random.uniform({2}, 1, 1); }),
            "uniform: expected low < high, got 1 and 1");
  EXPECT_EQ(error_text([&] { random.bernoulli({2}, 1.5); }),
            "bernoulli: expected a probability from 0 to 1, got 1.5");
  EXPECT_EQ(error_text([&] { random.dropout(ones({2}), 1); }),
            "dropout: expected a probability from 0 to below 1, got 1");
}

}  // namespace
}  // namespace tessera
