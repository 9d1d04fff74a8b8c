#include "tessera/infer/generator.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "support/expect_error.h"
#include "tessera/tessera.h"

namespace tessera {
namespace {

// Wide enough a distribution of weights that greedy texts do not run in circles at once.
constexpr GptConfig kConfig = {.vocabulary = 29,
                               .context = 40,
                               .width = 16,
                               .layers = 2,
                               .heads = 2,
                               .dropout = 0.5,  // must not be felt
                               .deviation = 0.4};

const Gpt& model() {
  static const Gpt instance(kConfig, Random(4));
  return instance;
}

constexpr SamplingOptions kGreedy = {.temperature = 0};

// Without a cache: the logits of the whole text for each token.
Tokens recomputed(const Gpt& gpt, Tokens text, int64_t tokens) {
  const ModeGuard evaluation(false);
  const int64_t context = gpt.config().context;
  Tokens made;
  int64_t seen = int64_t(text.size());
  for (int64_t i = 0; i < tokens; ++i) {
    const Tokens window(text.end() - seen, text.end());
    const Tensor logits = gpt.logits(tensor(window, {1, seen}));
    made.push_back(int32_t(argmax(slice(logits, 1, seen - 1, seen), -1).item()));
    text.push_back(made.back());
    if (++seen > context) seen = context / 2;
  }
  return made;
}

TEST(Generator, GreedyEqualsRecomputationWithoutTheCache) {
  Generator generator(model());
  for (const Tokens& prompt : {Tokens{3}, Tokens{7, 1, 28, 0, 5}, Tokens(30, 11)}) {
    const Tokens made = generator.generate({prompt}, {.tokens = 9, .sampling = kGreedy})[0];
    EXPECT_EQ(made, recomputed(model(), prompt, 9));
  }
}

TEST(Generator, GoesOnBeyondTheContext) {
  Generator generator(model());
  const Tokens prompt = {3, 9, 2};
  const Tokens made = generator.generate({prompt}, {.tokens = 100, .sampling = kGreedy})[0];
  EXPECT_EQ(made, recomputed(model(), prompt, 100));
  const Tokens full(40, 5);  // as long as the context
  EXPECT_EQ(generator.generate({full}, {.tokens = 3, .sampling = kGreedy})[0],
            recomputed(model(), full, 3));
}

TEST(Generator, ABatchEqualsItsRowsAlone) {
  Generator generator(model());
  const std::vector<Tokens> prompts = {
      {3}, {7, 1, 28, 0, 5, 6}, {1, 2, 3, 4, 5, 6, 7, 8, 9}, {9, 9}};
  const GenerateOptions options = {.tokens = 60, .sampling = kGreedy};  // pads leave the context
  const std::vector<Tokens> made = generator.generate(prompts, options);
  ASSERT_EQ(made.size(), prompts.size());
  for (size_t row = 0; row < prompts.size(); ++row) {
    const Tokens start(made[row].begin(), made[row].begin() + 31);
    EXPECT_EQ(start, recomputed(model(), prompts[row], 31)) << row;
  }
  // The longest row meets the end of the context as it does alone.
  EXPECT_EQ(made[2], recomputed(model(), prompts[2], 60));
}

TEST(Generator, PromptsAndStepsAreReplaysOfTwoPrograms) {
  Generator generator(model());
  GenerateOptions options = {.tokens = 10, .sampling = {.top_k = 5}};
  generator.generate({{3, 4}}, options);
  EXPECT_EQ(generator.stats().compilations, 2);
  EXPECT_EQ(generator.stats().replays, 8);
  // Other numbers, another length: nothing is compiled.
  options.sampling = {.temperature = 0.5, .top_k = 7, .seed = 3};
  options.tokens = 12;
  generator.generate({{3, 4, 5, 6, 7}}, options);
  EXPECT_EQ(generator.stats().compilations, 2);
  EXPECT_EQ(generator.stats().replays, 8 + 12);
}

TEST(Generator, SessionsAreBounded) {
  Generator generator(model());
  for (const int64_t rows : {1, 2, 3, 4, 5, 1}) {
    generator.generate(std::vector<Tokens>(size_t(rows), {3}), {.tokens = 2, .sampling = kGreedy});
  }
  EXPECT_EQ(generator.stats().compilations, 12);  // the first was forgotten
}

TEST(Generator, FollowsTheModelsParametersAndType) {
  Gpt own(kConfig, Random(9));
  Generator generator(own);
  const GenerateOptions options = {.tokens = 6, .sampling = kGreedy};
  EXPECT_EQ(generator.generate({{3}}, options)[0], recomputed(own, {3}, 6));
  own.load_state_dict(model().state_dict());
  EXPECT_EQ(generator.generate({{3}}, options)[0], recomputed(model(), {3}, 6));
  EXPECT_EQ(generator.stats().compilations, 2);
  own.to(DType::f64);
  EXPECT_EQ(generator.generate({{3}}, options)[0], recomputed(own, {3}, 6));
}

TEST(Generator, SeedsDecideWhatIsDrawn) {
  Generator generator(model());
  const auto made = [&](int64_t seed, const std::vector<Tokens>& prompts) {
    return generator.generate(prompts, {.tokens = 20, .sampling = {.seed = seed}});
  };
  const std::vector<Tokens> first = made(1, {{3}});
  EXPECT_EQ(made(1, {{3}}), first);
  EXPECT_NE(made(2, {{3}}), first);
  const std::vector<Tokens> batch = made(1, {{3}, {3}});
  EXPECT_EQ(batch[0], first[0]);
  EXPECT_NE(batch[1], first[0]);
}

TEST(Generator, RowsEndAtTheEndTokenOrWhenTold) {
  Generator generator(model());
  const Tokens whole = recomputed(model(), {3}, 12);
  const int32_t end = whole[5];
  const auto first = std::ranges::find(whole, end) - whole.begin();
  const Tokens until(whole.begin(), whole.begin() + first);
  GenerateOptions options = {.tokens = 12, .sampling = kGreedy, .end_token = end};
  EXPECT_EQ(generator.generate({{3}}, options)[0], until);

  options.end_token = {};
  std::vector<Tokens> told(2);
  const std::vector<Tokens> made =
      generator.generate({{3}, {3}}, options, [&](int64_t row, int32_t token) {
        told[size_t(row)].push_back(token);
        return row == 1 || told[0].size() < 4;
      });
  EXPECT_EQ(made[0], Tokens(whole.begin(), whole.begin() + 4));
  EXPECT_EQ(made[1], whole);
  EXPECT_EQ(told, made);
  EXPECT_EQ(generator.generate({{3}}, {.tokens = 0})[0], Tokens());
}

TEST(Generator, ChoosesAmongTheFirstTokensOnly) {
  Generator generator(model(), 3);
  const std::vector<Tokens> made = generator.generate({{20, 21}}, {.tokens = 30});
  EXPECT_LT(std::ranges::max(made[0]), 3);
}

TEST(Generator, RefusesWhatItCannotDo) {
  Generator generator(model());
  EXPECT_EQ(error_text([&] { generator.generate({}, {}); }),
            "generate: expected at least 1 prompt, got 0");
  EXPECT_EQ(error_text([&] {
              generator.generate({{1}, {}}, {});
            }),
            "generate: expected prompts of 1 to 40 tokens, got one of 0");
  EXPECT_EQ(error_text([&] { generator.generate({Tokens(41, 1)}, {}); }),
            "generate: expected prompts of 1 to 40 tokens, got one of 41");
  EXPECT_EQ(error_text([&] { generator.generate({{1}}, {.tokens = -1}); }),
            "generate: expected at least 0 tokens, got -1");
  EXPECT_EQ(error_text([&] { Generator(model(), 30); }),
            "generate: expected a choice of 1 to 29 tokens, got 30");
}

}  // namespace
}  // namespace tessera
