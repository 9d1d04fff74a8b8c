#include "tessera/infer/sampling.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "support/expect_error.h"
#include "tessera/tessera.h"

namespace tessera {
namespace {

constexpr int64_t kRows = 20000;
const std::vector<float> kLogits = {0.5f, 2, -1, 1.5f, 0, -3, 1, 0.25f};

// Shares of the tokens that rows of equal logits choose.
std::vector<double> shares(const SamplingOptions& options, const std::vector<int32_t>& text = {}) {
  const auto count = int64_t(kLogits.size());
  Sampler sampler(kRows, count, default_device());
  const SamplingForm form =
      sampler.begin(options, std::vector<std::vector<int32_t>>(size_t(kRows), text));
  const auto step = compile([&](const Tensor& logits) { return sampler.choose(logits, form); });
  std::vector<double> found(kLogits.size(), 0);
  for (const int64_t token :
       step(broadcast_to(tensor(kLogits), {kRows, count})).to_vector<int64_t>()) {
    found[size_t(token)] += 1.0 / double(kRows);
  }
  return found;
}

std::vector<double> probabilities(std::vector<double> logits) {
  double total = 0;
  for (double& x : logits) total += x = std::exp(x);
  for (double& x : logits) x /= total;
  return logits;
}

// Those of the given tokens alone.
std::vector<double> among(const std::vector<size_t>& tokens, double temperature = 1) {
  std::vector<double> logits(kLogits.size(), -INFINITY);
  for (const size_t token : tokens) logits[token] = double(kLogits[token]) / temperature;
  return probabilities(logits);
}

// Within five standard deviations; exactly where nothing can come.
void expect_shares(const std::vector<double>& found, const std::vector<double>& expected) {
  for (size_t i = 0; i < expected.size(); ++i) {
    const double p = expected[i];
    EXPECT_NEAR(found[i], p, 5 * std::sqrt(p * (1 - p) / double(kRows)) + 1e-9) << "token " << i;
  }
}

TEST(Sampling, DrawsByProbability) {
  expect_shares(shares({}), among({0, 1, 2, 3, 4, 5, 6, 7}));
  expect_shares(shares({.temperature = 0.5}), among({0, 1, 2, 3, 4, 5, 6, 7}, 0.5));
}

TEST(Sampling, TemperatureZeroTakesTheLikeliest) {
  EXPECT_EQ(shares({.temperature = 0, .top_p = 0.5})[1], shares({.temperature = 0})[1]);
  EXPECT_NEAR(shares({.temperature = 0})[1], 1, 1e-9);
}

TEST(Sampling, TopK) {
  expect_shares(shares({.top_k = 3}), among({1, 3, 6}));
  expect_shares(shares({.temperature = 2, .top_k = 2}), among({1, 3}, 2));
  expect_shares(shares({.top_k = 1}), among({1}));
  expect_shares(shares({.top_k = 100}), among({0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST(Sampling, TopP) {
  // In order of probability: 1 (0.390), 3 (0.237), 6 (0.144), 0 (0.087), …
  expect_shares(shares({.top_p = 0.38}), among({1}));
  expect_shares(shares({.top_p = 0.5}), among({1, 3}));
  expect_shares(shares({.top_p = 0.7}), among({1, 3, 6}));
  // Of the three likeliest the first has 0.507.
  expect_shares(shares({.top_k = 3, .top_p = 0.5}), among({1}));
  expect_shares(shares({.top_k = 3, .top_p = 0.52}), among({1, 3}));
}

TEST(Sampling, MinP) {
  // Relative to the likeliest: 3 e^-0.5 = 0.61, 6 e^-1 = 0.37, 0 e^-1.5 = 0.22
  expect_shares(shares({.min_p = 0.3}), among({1, 3, 6}));
  expect_shares(shares({.min_p = 0.5}), among({1, 3}));
  expect_shares(shares({.min_p = 1}), among({1}));
  expect_shares(shares({.top_k = 2, .min_p = 0.3}), among({1, 3}));
}

TEST(Sampling, RepetitionPenaltyKnowsTheTextAndWhatWasChosen) {
  std::vector<double> logits(kLogits.begin(), kLogits.end());
  logits[1] /= 2;
  logits[2] *= 2;
  expect_shares(shares({.repetition_penalty = 2}, {1, 2, 1}), probabilities(logits));

  Sampler sampler(1, 4, default_device());
  const SamplingForm form = sampler.begin({.temperature = 0, .repetition_penalty = 10}, {{0}});
  const auto step = compile([&](const Tensor& x) { return sampler.choose(x, form); });
  const Tensor x = tensor(std::vector<float>{5, 4, 3, -9}, {1, 4});
  std::vector<double> chosen;
  for (int i = 0; i < 3; ++i) chosen.push_back(step(x).item());
  EXPECT_EQ(chosen, (std::vector<double>{1, 2, 0}));
}

TEST(Sampling, FormsAreWhatStaticsSay) {
  Sampler sampler(1, 1000, default_device());
  const SamplingForm form = sampler.begin({.top_k = 65, .top_p = 0.5, .min_p = 0.1}, {{}});
  EXPECT_EQ(form.candidates, 128);
  EXPECT_EQ(SamplingForm::from(form.statics()).statics(), form.statics());
  EXPECT_EQ(sampler.begin({.top_p = 0.5}, {{}}).candidates, 1000);
  EXPECT_EQ(sampler.begin({.min_p = 0.5}, {{}}).candidates, 0);
}

TEST(Sampling, RefusesWhatMakesNoSense) {
  const auto error = [](const SamplingOptions& options) {
    return error_text([&] { check(options); });
  };
  EXPECT_EQ(error({.temperature = -1}), "generate: expected a temperature from 0 to 1e6, got -1");
  EXPECT_EQ(error({.top_k = -1}), "generate: expected a top-k of at least 0, got -1");
  EXPECT_EQ(error({.top_p = 0}), "generate: expected a top-p above 0 and at most 1, got 0");
  EXPECT_EQ(error({.min_p = 1.5}), "generate: expected a min-p from 0 to 1, got 1.5");
  EXPECT_EQ(error({.repetition_penalty = 0}),
            "generate: expected a repetition penalty above 0 and at most 1e6, got 0");
}

}  // namespace
}  // namespace tessera
