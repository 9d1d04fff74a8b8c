#include "tessera/data/tokenizer.h"

#include <gtest/gtest.h>

#include "data/token_texts.h"
#include "support/expect_error.h"
#include "tessera/data/bpe_trainer.h"
#include "tessera/data/character_trainer.h"

namespace tessera {
namespace {

using Tokens = std::vector<int32_t>;

Tokenizer characters(std::string_view text, CharacterOptions options = {}) {
  CharacterTrainer trainer(std::move(options));
  trainer.add(text);
  return trainer.train();
}

TEST(CharacterTokenizer, NumbersCharactersByCodePoint) {
  const Tokenizer tokenizer = characters("hello, é日");
  EXPECT_EQ(tokenizer.size(), 8);
  EXPECT_EQ(tokenizer.encode(" ,ehloé日"), (Tokens{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("hole é日,")), "hole é日,");
}

TEST(CharacterTokenizer, NamesTheByteOfAnUnknownCharacter) {
  const Tokenizer tokenizer = characters("aé", {.specials = {"<s>"}});
  EXPECT_EQ(error_text([&] { tokenizer.encode("aé<s>aéx"); }),
            "tokenizer: byte 9: expected one of 2 known characters, got \"x\"");
  EXPECT_EQ(error_text([&] { tokenizer.encode("a\xff"); }).substr(0, 60),
            "tokenizer: byte 1: expected one of 2 known characters, got \"");
}

TEST(CharacterTokenizer, MayHaveATokenForUnknownCharacters) {
  const Tokenizer tokenizer = characters("ab", {.unknown = "<unk>", .specials = {"<s>"}});
  EXPECT_EQ(tokenizer.encode("a日b\xff<s><unk>"),
            (Tokens{0, 2, 1, 2, 3, 2, 2, 2, 2, 2}));  // "<unk>" itself is plain text
  EXPECT_EQ(tokenizer.decode(Tokens{2, 3, 0}), "<unk><s>a");
}

TEST(CharacterTokenizer, IsMadeFromUtf8) {
  CharacterTrainer trainer({.specials = {"<s>"}});
  EXPECT_EQ(error_text([&] { trainer.train(); }),
            "characters: expected a text with characters, got none");
  EXPECT_EQ(error_text([&] { trainer.add("a<s>b\xff"); }),
            "characters: byte 5: expected UTF-8, got byte 255");
  EXPECT_EQ(error_text([&] { CharacterTrainer({.specials = {""}}); }),
            "specials: expected special tokens of some text, got an empty one");
}

TEST(ByteTokenizer, NumbersAreBytes) {
  const Tokenizer tokenizer = byte_tokenizer({"<|end|>"});
  EXPECT_EQ(tokenizer.size(), 257);
  EXPECT_EQ(tokenizer.encode("A\xff<|end|>\n"), (Tokens{65, 255, 256, 10}));
  EXPECT_EQ(tokenizer.special("<|end|>"), 256);
  EXPECT_EQ(error_text([&] { tokenizer.special("<s>"); }),
            "tokenizer: expected a special token \"<s>\", got a vocabulary of 257 without it");
  EXPECT_EQ(error_text([&] {
              tokenizer.decode(Tokens{65, 257});
            }),
            "decode: expected tokens from 0 to 256, got 257");
  EXPECT_EQ(error_text([&] { tokenizer.decode(Tokens{-1}); }),
            "decode: expected tokens from 0 to 256, got -1");
}

TEST(Tokenizer, FindsTheLongestSpecialFirst) {
  const Tokenizer tokenizer = byte_tokenizer({"<a", "<a>", "<a>b", "a>"});
  EXPECT_EQ(tokenizer.encode("<a<a>x<a>b<<a>a>"), (Tokens{256, 257, 'x', 258, '<', 257, 259}));
}

TEST(Tokenizer, GivesBackAnyBytes) {
  RandomSource random(3);
  BpeTrainer trainer({.vocab_size = 400, .min_count = 1, .specials = {"the<", "'s"}});
  for (int i = 0; i < 50; ++i) trainer.add(random_text(random, 400));
  for (const Tokenizer& tokenizer : {byte_tokenizer({"the"}), trainer.train()}) {
    for (int round = 0; round < 300; ++round) {
      const std::string bytes = random_bytes(random, random.below(200));
      ASSERT_EQ(tokenizer.decode(tokenizer.encode(bytes)), bytes);
      const std::string text = random_text(random, random.below(200));
      ASSERT_EQ(tokenizer.decode(tokenizer.encode(text)), text);
    }
  }
}

TEST(Tokenizer, EncodesLongTextsInPartsAsInOne) {
  RandomSource random(4);
  BpeTrainer trainer({.vocab_size = 300});
  std::string text = "z";
  for (int i = 0; i < 100; ++i) text += random_text(random, 300);
  text += "z\n";
  trainer.add(text);
  const Tokenizer tokenizer = trainer.train();
  const Tokens once = tokenizer.encode(text);
  std::string many;
  Tokens expected;
  while (many.size() < (size_t(3) << 20)) {  // several tasks
    many += text;
    expected.insert(expected.end(), once.begin(), once.end());
  }
  EXPECT_EQ(tokenizer.encode(many), expected);
}

TEST(Tokenizer, MergesALongWordInLittleTime) {
  TokenTable table = byte_tokenizer().table();
  for (int32_t length = 2, token = 'a'; length <= 1024; length *= 2) {
    table.merges.push_back({token, token});
    token = int32_t(table.tokens.size());
    table.tokens.emplace_back(size_t(length), 'a');
  }
  const Tokenizer tokenizer(table);
  EXPECT_EQ(tokenizer.encode(std::string(1000003, 'a')).size(), 976u + 4);
}

TEST(Tokenizer, RefusesATableThatCannotWork) {
  const TokenTable bytes = byte_tokenizer().table();
  const auto text_of = [](const TokenTable& table) {
    return error_text([&] { Tokenizer(table, "t"); });
  };
  TokenTable table = bytes;
  table.tokens.pop_back();
  EXPECT_EQ(text_of(table), "tokenizer: t: expected a token for every byte, got none for 255");
  table = bytes;
  table.tokens.push_back("");
  EXPECT_EQ(text_of(table), "tokenizer: t: token 256 is empty");
  table.tokens.back() = "a";
  EXPECT_EQ(text_of(table), "tokenizer: t: tokens 97 and 256 are both \"a\"");
  table = bytes;
  table.specials = {256};
  EXPECT_EQ(text_of(table), "tokenizer: t: expected the special token to be 0 to 255, got 256");
  table = bytes;
  table.unknown = 3;
  EXPECT_EQ(text_of(table), "tokenizer: t: expected no unknown token beside 256 bytes, got 3");
  table = bytes;
  table.merges = {{97, 256}};
  EXPECT_EQ(text_of(table), "tokenizer: t: merge 0: expected tokens from 0 to 255, got 97 and 256");
  table.merges = {{97, 98}};
  EXPECT_EQ(text_of(table), "tokenizer: t: merge 0 gives \"ab\", which is no token");
  table.tokens.push_back("ab");
  table.merges = {{97, 98}, {97, 98}};
  EXPECT_EQ(text_of(table), "tokenizer: t: merge 1 is there already");
  table = characters("ab").table();
  table.unknown = 2;
  EXPECT_EQ(text_of(table), "tokenizer: t: expected the unknown token to be 0 to 1, got 2");
  table.unknown.reset();
  table.tokens.push_back("ab");
  EXPECT_EQ(text_of(table), "tokenizer: t: expected token 2 to be one character, got \"ab\"");
  table.tokens.pop_back();
  table.merges = {{0, 1}};
  EXPECT_EQ(text_of(table), "tokenizer: t: expected no merges of characters, got 1");
}

}  // namespace
}  // namespace tessera
