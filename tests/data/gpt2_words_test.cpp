#include "tessera/data/gpt2_words.h"

#include <gtest/gtest.h>

#include "data/token_texts.h"
#include "tessera/data/characters.h"

namespace tessera {
namespace {

using Words = std::vector<std::string>;

Words words_of(std::string_view text) {
  Words words;
  while (!text.empty()) {
    const size_t length = first_word_length(text);
    words.emplace_back(text.substr(0, length));
    text.remove_prefix(length);
  }
  return words;
}

TEST(Gpt2Words, FollowThePattern) {
  EXPECT_EQ(words_of("Hello, world's 123abc"),
            (Words{"Hello", ",", " world", "'s", " 123", "abc"}));
  EXPECT_EQ(words_of("a  b   c "), (Words{"a", " ", " b", "  ", " c", " "}));
  EXPECT_EQ(words_of("x\n\n  y\r\n"), (Words{"x", "\n\n ", " y", "\r\n"}));
  EXPECT_EQ(words_of("a\tb \tc"), (Words{"a", "\t", "b", " ", "\t", "c"}));
  EXPECT_EQ(words_of("we'll 'll 'S ''s"), (Words{"we", "'ll", " '", "ll", " '", "S", " ''", "s"}));
  EXPECT_EQ(words_of("é日ß½² ٣"), (Words{"é日ß", "½²", " ٣"}));
  EXPECT_EQ(words_of("a\u3000\u3000b"), (Words{"a", "\u3000", "\u3000", "b"}));
  EXPECT_EQ(words_of("   "), (Words{"   "}));
}

TEST(Gpt2Words, TakeBytesThatAreNoUtf8ForPunctuation) {
  EXPECT_EQ(words_of("a\xff\xfe! \xc3"
                     "b"),
            (Words{"a", "\xff\xfe!", " \xc3", "b"}));
  EXPECT_EQ(words_of("\xe6\x97"), (Words{"\xe6\x97"}));
}

TEST(Gpt2Words, StayTheSameWhenATextIsCut) {
  RandomSource random(1);
  for (int round = 0; round < 200; ++round) {
    const std::string text = random_text(random, 300);
    for (const size_t size : {0, 1, 17, 100}) {
      Words together;
      for (const std::string_view piece : cut_between_words(text, size)) {
        const Words words = words_of(piece);
        together.insert(together.end(), words.begin(), words.end());
      }
      ASSERT_EQ(together, words_of(text));
    }
  }
  EXPECT_EQ(cut_between_words("ab\ncd\nef", 3).size(), 2u);
  EXPECT_EQ(cut_between_words("ab \ncd", 1).size(), 1u) << "the blank and the break are one word";
}

TEST(Gpt2Words, SpellEveryByteAsAVisibleCharacter) {
  EXPECT_EQ(spell_bytes("Hi you\n"), "HiĠyouĊ");
  EXPECT_EQ(spell_bytes(std::string_view("\0\xff\xad", 3)), "ĀÿŃ");
  EXPECT_EQ(gpt2_byte_order()[0], '!');
  EXPECT_EQ(gpt2_byte_order()[255], 0xAD);
  RandomSource random(2);
  const std::string bytes = random_bytes(random, 2000);
  EXPECT_EQ(unspell_bytes(spell_bytes(bytes)), bytes);
  EXPECT_EQ(unspell_bytes("a b"), std::nullopt);
  EXPECT_EQ(unspell_bytes("日"), std::nullopt);
  EXPECT_EQ(unspell_bytes("\xff"), std::nullopt);
}

TEST(Characters, AreReadAndClassified) {
  const auto code_of = [](std::string_view text) { return first_character(text).code; };
  EXPECT_EQ(code_of("a"), U'a');
  EXPECT_EQ(code_of("é"), U'é');
  EXPECT_EQ(code_of("日"), U'日');
  EXPECT_EQ(code_of("🎉"), U'🎉');
  EXPECT_EQ(first_character("🎉").length, 4u);
  EXPECT_EQ(code_of("\x80"), Character::kInvalid);
  EXPECT_EQ(first_character("\xf0\x9f").length, 1u);
  using enum CharacterClass;
  struct Row {
    char32_t code;
    CharacterClass kind;
  };
  for (const Row& row : {Row{U'z', letter},
                         {U'0', number},
                         {U'_', other},
                         {0x1C, other},
                         {0x85, space},
                         {0x2009, space},
                         {0x200B, other},
                         {0x301, other},
                         {U'Ⅷ', number},
                         {U'一', letter},
                         {0x9FFF, letter},
                         {0x1F389, other},
                         {0x10FFFF, other},
                         {Character::kInvalid, other}}) {
    EXPECT_EQ(class_of(row.code), row.kind) << std::hex << uint32_t(row.code);
  }
}

}  // namespace
}  // namespace tessera
