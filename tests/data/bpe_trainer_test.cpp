#include "tessera/data/bpe_trainer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "data/token_texts.h"
#include "support/expect_error.h"
#include "tessera/data/gpt2_words.h"
#include "tessera/data/tokenizer_file.h"

namespace tessera {
namespace {

using Symbols = std::vector<int32_t>;

// Training as it is defined: count all pairs anew for every merge.
TokenTable naive_bpe(std::string_view text, int64_t size, int64_t min_count) {
  TokenTable table;
  std::map<std::string, int32_t> numbers;
  for (const uint8_t byte : gpt2_byte_order()) {
    numbers[std::string(1, char(byte))] = int32_t(table.tokens.size());
    table.tokens.emplace_back(1, char(byte));
  }
  std::vector<Symbols> words;
  while (!text.empty()) {
    const size_t length = first_word_length(text);
    Symbols& word = words.emplace_back();
    for (const char c : text.substr(0, length)) word.push_back(numbers[std::string(1, c)]);
    text.remove_prefix(length);
  }
  while (int64_t(table.tokens.size()) < size) {
    std::map<TokenPair, int64_t> counts;  // in the order of the pairs
    for (const Symbols& word : words) {
      for (size_t i = 0; i + 1 < word.size(); ++i) ++counts[{word[i], word[i + 1]}];
    }
    const auto best = std::ranges::max_element(
        counts, [](const auto& a, const auto& b) { return a.second < b.second; });
    if (best == counts.end() || best->second < min_count) break;
    const TokenPair pair = best->first;
    const std::string merged = table.tokens[size_t(pair.left)] + table.tokens[size_t(pair.right)];
    const auto [place, fresh] = numbers.emplace(merged, int32_t(table.tokens.size()));
    if (fresh) table.tokens.push_back(merged);
    if (std::ranges::find(table.merges, pair) == table.merges.end()) table.merges.push_back(pair);
    for (Symbols& word : words) {
      Symbols shorter;
      for (size_t i = 0; i < word.size(); ++i) {
        const bool here = word[i] == pair.left && i + 1 < word.size() && word[i + 1] == pair.right;
        shorter.push_back(here ? place->second : word[i]);
        i += here;
      }
      word = std::move(shorter);
    }
  }
  return table;
}

TokenTable train(const std::string& text, BpeOptions options) {
  BpeTrainer trainer(std::move(options));
  trainer.add(text);
  return trainer.train().table();
}

TEST(BpeTrainer, EqualsTheDefinition) {
  RandomSource random(5);
  for (int round = 0; round < 40; ++round) {
    // Few letters give overlaps, ties and tokens that come about in two ways.
    std::string text = random_bytes(random, 400, 2 + round % 4);
    for (char& c : text) c = char(c + 'a');
    if (round % 2 == 1) text += random_text(random, 400);
    const int64_t size = 256 + random.below(120), least = 1 + random.below(3);
    const TokenTable expected = naive_bpe(text, size, least);
    ASSERT_EQ(train(text, {.vocab_size = size, .min_count = least}), expected) << round;
  }
}

TEST(BpeTrainer, EqualsHuggingFacesTrainer) {
  const Tokenizer theirs = load_tokenizer(golden("bpe.json"));
  const TokenTable ours =
      train(read_text(golden("corpus.txt")), {.vocab_size = 600, .specials = {"<|endoftext|>"}});
  EXPECT_EQ(ours, theirs.table());
  EXPECT_GT(ours.merges.size(), 250u);
}

TEST(BpeTrainer, DependsOnNothingButTheWords) {
  const std::string text = read_text(golden("corpus.txt"));
  const TokenTable once = train(text, {.vocab_size = 500});
  // Longer than a task's part, so that several count;.
  std::string many;
  const std::string part = "z" + text + "z\n";  // no word crosses from one to the next
  BpeTrainer in_parts({.vocab_size = 500}), in_one({.vocab_size = 500});
  for (int i = 0; i < 1000; ++i) {
    many += part;
    in_parts.add(part);
  }
  in_one.add(many);
  EXPECT_EQ(in_one.train().table(), in_parts.train().table());
  EXPECT_EQ(train(text, {.vocab_size = 500}), once);
}

TEST(BpeTrainer, LearnsNothingFromSpecials) {
  std::string text;
  for (int i = 0; i < 100; ++i) text += "<|endoftext|>ab";
  const TokenTable table = train(text, {.vocab_size = 300, .specials = {"<|endoftext|>"}});
  EXPECT_EQ(table.tokens.size(), 258u);
  EXPECT_EQ(table.tokens[256], "ab");
  EXPECT_EQ(table.specials, std::vector<int32_t>{257});
}

TEST(BpeTrainer, EndsWhereThePairsRunOut) {
  EXPECT_EQ(train("", {.vocab_size = 1000}).tokens.size(), 256u);
  EXPECT_EQ(train("ab", {.vocab_size = 1000}).tokens.size(), 256u);
  EXPECT_EQ(train("ab", {.vocab_size = 1000, .min_count = 1}).tokens.size(), 257u);
}

TEST(BpeTrainer, RefusesAVocabularyWithoutRoom) {
  const auto make = [](int64_t size, std::vector<std::string> specials) {
    return error_text([&] { BpeTrainer({.vocab_size = size, .specials = std::move(specials)}); });
  };
  EXPECT_EQ(make(256, {"<s>"}),
            "bpe: expected a vocabulary of 257 (256 bytes and 1 specials) to 16777216 tokens, "
            "got 256");
  EXPECT_EQ(make(400, {""}), "specials: expected special tokens of some text, got an empty one");
}

}  // namespace
}  // namespace tessera
