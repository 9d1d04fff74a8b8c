#include "tessera/bench/char_gpt.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tessera/optim/optim.h"
#include "tessera/tensor/ops.h"
#include "tessera/tessera.h"

namespace tessera::bench {
namespace {

constexpr CharGptConfig kSmall = {
    .layers = 2, .heads = 2, .width = 16, .context = 8, .vocabulary = 5};

// Losses of three steps that learn one sequence.
std::vector<double> losses(DType dtype) {
  CharGptConfig config = kSmall;
  config.dtype = dtype;
  const CharGpt gpt(config, 1);
  AdamW optimizer(gpt.parameters(), {.lr = 1e-2});
  const auto step = compile([&](const Tensor& tokens, const Tensor& targets) {
    const Tensor loss = gpt.loss(tokens, targets);
    backward(loss);
    optimizer.step();
    return loss;
  });
  const Tensor text = tensor(std::vector<int64_t>{0, 1, 2, 3, 4, 3, 2, 1, 0}, {1, 9});
  std::vector<double> result;
  for (int i = 0; i < 3; ++i) {
    result.push_back(step(slice(text, 1, 0, 8), slice(text, 1, 1, 9)).item());
  }
  return result;
}

TEST(CharGpt, StartsFromChanceAndLearns) {
  init();
  const std::vector<double> seen = losses(DType::f32), exact = losses(DType::f64);
  // Not nearer: the head is the token table, and so favours each token as its own successor.
  EXPECT_NEAR(exact[0], std::log(5.0), 0.2);
  EXPECT_LT(exact[2], exact[0] - 0.01);
  for (size_t i = 0; i < seen.size(); ++i) EXPECT_NEAR(seen[i], exact[i], 1e-5);
}

TEST(CharGpt, SeesNothingOfWhatFollows) {
  init();
  const CharGpt gpt(kSmall, 1);
  const auto first = [&](int64_t last) {
    const std::vector<int64_t> text = {0, 1, 2, last};
    return slice(gpt.logits(tensor(text, {1, 4})), 1, 0, 3).to_vector<float>();
  };
  EXPECT_EQ(first(3), first(4));
}

TEST(CharGpt, CountsItsProducts) {
  // Per token and layer: 12 width², and half of two products of width with the context.
  const double per_token = 2 * (2 * (12 * 256 + 16 * 8) + 5 * 16);
  EXPECT_EQ(forward_flops(kSmall, 8), 8 * per_token);
}

}  // namespace
}  // namespace tessera::bench
