// Random numbers: equal bits everywhere, one stream for plain and compiled draws, right moments.
#include "tessera/tensor/random.h"

#include <gtest/gtest.h>

#include <set>

#include <cmath>

#include "support/expect_error.h"
#include "tessera/base/philox.h"
#include "tessera/conformance/reference.h"
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
  EXPECT_EQ(sum(isfinite(x)).item(), 100000);
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

TEST(Random, IntegersFillTheirRange) {
  const Random random(5);
  const std::vector<int64_t> small = random.randint({60000}, -2, 4).to_vector<int64_t>();
  std::vector<int> counts(6);
  for (const int64_t v : small) {
    ASSERT_GE(v, -2);
    ASSERT_LT(v, 4);
    ++counts[size_t(v + 2)];
  }
  for (const int count : counts) EXPECT_NEAR(count, 10000, 500);
  const Tensor wide = random.randint({1000}, 0, int64_t{1} << 48);
  EXPECT_GT(max(wide).item(), 0x1p47);
  EXPECT_EQ(unique_counts(mod(wide, 2)).values.numel(), 2);  // low bits vary too
  EXPECT_EQ(random.randint({3}, 0, 256, DType::u8).dtype(), DType::u8);
  EXPECT_EQ(random.randint({0, 2}, 0, 2).shape(), (Shape{0, 2}));
}

TEST(Random, APermutationHoldsEveryNumberOnce) {
  const Random random(6);
  const Tensor p = random.permutation(1000);
  EXPECT_EQ(to_doubles(sort(p).values), to_doubles(arange(1000)));
  EXPECT_GT(sum(p != arange(1000)).item(), 900);
  EXPECT_NE(to_doubles(random.permutation(1000)), to_doubles(p));
  EXPECT_EQ(random.permutation(0).shape(), (Shape{0}));
}

TEST(Random, MultinomialFollowsItsWeights) {
  const Random random(7);
  const Tensor weights = tensor(std::vector<float>{0, 1, 0, 3, 0, 4, 4, 4, 0, 0}, {2, 5});
  const std::vector<int64_t> draws = random.multinomial(weights, 20000, true).to_vector<int64_t>();
  ASSERT_EQ(draws.size(), 40000u);
  std::vector<double> counts(10);
  for (size_t i = 0; i < draws.size(); ++i) counts[i / 20000 * 5 + size_t(draws[i])] += 1;
  const std::vector<double> expected = {0, 5000, 0, 15000, 0, 20000. / 3, 20000. / 3, 20000. / 3};
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(counts[i], expected[i], 300) << i;
  EXPECT_EQ(counts[8] + counts[9], 0);
}

TEST(Random, MultinomialWithoutReplacement) {
  const Random random(8);
  const Tensor weights = tensor(std::vector<float>{1, 0, 2, 5, 0});
  std::vector<int> first(5);
  for (int i = 0; i < 4000; ++i) {
    const std::vector<int64_t> draw = random.multinomial(weights, 3).to_vector<int64_t>();
    EXPECT_EQ(std::set<int64_t>(draw.begin(), draw.end()), (std::set<int64_t>{0, 2, 3}));
    ++first[size_t(draw[0])];
  }
  EXPECT_NEAR(first[3], 2500, 150);
  EXPECT_NEAR(first[0], 500, 100);
}

TEST(Random, MultinomialOfExtremeWeights) {
  const Random random(9);
  // Against a class of weight 1, even a million of practically none are never drawn.
  Tensor weights = full({1000000}, 1e-30);
  weights = concat({weights, ones({1})});
  for (int i = 0; i < 40; ++i) EXPECT_EQ(random.multinomial(weights, 1).item(), 1000000);
  EXPECT_LE(max(random.multinomial(zeros({3}), 5, true)).item(), 2);
}

TEST(Random, UniformStaysBelowItsEnd) {
  EXPECT_LT(max(Random(3).uniform({4000000}, 100, 101)).item(), 101);
}

TEST(Random, DropoutOfHalfTypesKeepsTheMean) {
  const Tensor x = Random(4).dropout(ones({100}, DType::bf16), 0.1);
  EXPECT_EQ(max(x).item(), double(bf16(float(1 / 0.9))));
}

TEST(RandomError, Texts) {
  const Random random(2);
  EXPECT_EQ(error_text([&] { random.randint({2}, 3, 3); }),
            "randint: expected low < high at most 2^48 apart, got 3 and 3");
  EXPECT_EQ(error_text([&] { random.randint({2}, 0, 3, DType::f32); }),
            "randint: expected an integer dtype, got f32");
  EXPECT_EQ(error_text([&] { random.randint({2}, 0, 257, DType::u8); }),
            "literal: 256 does not fit u8");
  EXPECT_EQ(error_text([&] { random.permutation(-1); }),
            "permutation: expected at least 0 elements, got -1");
  EXPECT_EQ(error_text([&] { random.multinomial(scalar(1.f), 1); }),
            "multinomial: expected weights (…, C) of at least one class, got ()");
  EXPECT_EQ(error_text([&] { random.multinomial(ones({3}), 0); }),
            "multinomial: expected at least 1 draw, got 0");
  EXPECT_EQ(error_text([&] { random.multinomial(ones({3}), 4); }),
            "multinomial: 4 draws without replacement from 3 classes");
  EXPECT_EQ(error_text([&] { random.uniform({2}, 1, 1); }),
            "uniform: expected low < high, got 1 and 1");
  EXPECT_EQ(error_text([&] { random.bernoulli({2}, 1.5); }),
            "bernoulli: expected a probability from 0 to 1, got 1.5");
  EXPECT_EQ(error_text([&] { random.dropout(ones({2}), 1); }),
            "dropout: expected a probability from 0 to below 1, got 1");
}

}  // namespace
}  // namespace tessera
