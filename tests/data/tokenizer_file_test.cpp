#include "tessera/data/tokenizer_file.h"

#include <gtest/gtest.h>

#include "data/token_texts.h"
#include "support/expect_error.h"
#include "tessera/data/bpe_trainer.h"
#include "tessera/data/character_trainer.h"

namespace tessera {
namespace {

void expect_encodings(const Tokenizer& tokenizer, std::string_view name) {
  const std::vector<Encoding> encodings = golden_encodings(name);
  EXPECT_GT(encodings.size(), 20u);
  for (const Encoding& encoding : encodings) {
    EXPECT_EQ(tokenizer.encode(encoding.text), encoding.tokens) << encoding.text;
    EXPECT_EQ(tokenizer.decode(encoding.tokens), encoding.text);
  }
}

TEST(TokenizerFile, OfGpt2EncodesAsHuggingFaceDoes) {
  const auto vocab = shared_data("gpt2/vocab.json"), merges = shared_data("gpt2/merges.txt");
  if (!std::filesystem::exists(vocab)) GTEST_SKIP() << "../shared/data/gpt2 is not there";
  const Tokenizer tokenizer = load_gpt2_tokenizer(vocab, merges);
  EXPECT_EQ(tokenizer.size(), 50257);
  EXPECT_EQ(tokenizer.special("<|endoftext|>"), 50256);
  expect_encodings(tokenizer, "gpt2.json");
  EXPECT_EQ(parse_tokenizer(format_tokenizer(tokenizer), "gpt2").table(), tokenizer.table());
}

TEST(TokenizerFile, OfHuggingFaceIsRead) {
  expect_encodings(load_tokenizer(golden("bpe.json")), "bpe_texts.json");
}

TEST(TokenizerFile, GivesBackWhatWasSaved) {
  const TempFolder folder;
  CharacterTrainer characters({.unknown = "<unk>", .specials = {"<s>"}}), plain;
  characters.add("aé 日\n\"\\");
  plain.add("ab");
  BpeTrainer bpe({.vocab_size = 300, .specials = {"<|end of text|>"}});
  bpe.add("ab ab abc abc");
  for (const Tokenizer& tokenizer : {characters.train(), plain.train(), byte_tokenizer({"<s>"}),
                                     byte_tokenizer(), bpe.train()}) {
    save_tokenizer(folder / "tokenizer.json", tokenizer);
    const Tokenizer loaded = load_tokenizer(folder / "tokenizer.json");
    EXPECT_EQ(loaded.table(), tokenizer.table());
    EXPECT_EQ(format_tokenizer(loaded), format_tokenizer(tokenizer));
  }
}

// The saved file of characters a and b with one thing changed, and what is said about it.
std::string refusal(const std::string& what, const std::string& with,
                    const Tokenizer& tokenizer = byte_tokenizer({"<s>"})) {
  std::string text = format_tokenizer(tokenizer);
  const size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  text.replace(at, what.size(), with);
  return error_text([&] { parse_tokenizer(text, "t"); });
}

TEST(TokenizerFile, IsRefusedWhereItAsksForSomethingElse) {
  EXPECT_EQ(refusal("\"normalizer\": null", "\"normalizer\": {\"type\": \"NFC\"}"),
            "tokenizer: t: expected \"normalizer\" of the file to be null, got an object");
  EXPECT_EQ(refusal("\"version\"", "\"colour\""),
            "tokenizer: t: the file has a field that is not known here: \"colour\"");
  EXPECT_EQ(refusal("\"type\": \"BPE\"", "\"type\": \"Unigram\""),
            "tokenizer: t: expected \"type\" of the model to be \"BPE\", got the string "
            "\"Unigram\"");
  EXPECT_EQ(refusal("\"merges\": []", "\"merges\": 1"),
            "tokenizer: t: expected a model with a vocabulary and merges, got an object");
  EXPECT_EQ(refusal("\"add_prefix_space\": false", "\"add_prefix_space\": true"),
            "tokenizer: t: expected \"add_prefix_space\" of the pre-tokenizer to be false, got "
            "true");
  EXPECT_EQ(refusal("\"type\": \"ByteLevel\"", "\"type\": \"Whitespace\""),
            "tokenizer: t: expected pre-tokenizer and decoder ByteLevel, or none and Fuse, got "
            "the string \"Whitespace\" and the string \"ByteLevel\"");
  EXPECT_EQ(refusal("\"post_processor\": null", "\"post_processor\": {\"type\": \"Bert\"}"),
            "tokenizer: t: expected no post-processor but ByteLevel, got the string \"Bert\"");
  EXPECT_EQ(refusal("\"lstrip\": false", "\"lstrip\": true"),
            "tokenizer: t: expected \"lstrip\" of an added token to be false, got true");
  EXPECT_EQ(error_text([] { parse_tokenizer("[]", "t"); }),
            "tokenizer: t: expected an object, got an array");
  EXPECT_EQ(error_text([] { parse_tokenizer("{", "t"); }).substr(0, 18), "tokenizer: t: byte");
}

TEST(TokenizerFile, IsRefusedWhereItLies) {
  EXPECT_EQ(refusal("\"A\": 65", "\"A\": 66"),
            "tokenizer: t: two tokens have the number 66; one is \"B\"");
  EXPECT_EQ(refusal("\"A\": 65", "\"A\": 999"),
            "tokenizer: t: expected the number of token \"A\" to be 0 to 257, got the number 999");
  EXPECT_EQ(refusal("\"A\": 65", "\"A\": 257"), "tokenizer: t: no token has the number 65");
  EXPECT_EQ(refusal("\"A\": 65", "\"日\": 65"),
            "tokenizer: t: token \"日\" is no spelling of bytes");
  EXPECT_EQ(refusal("\"A\": 65", "\"\": 65"), "tokenizer: t: token 65 has no text");
  EXPECT_EQ(refusal("\"<s>\": 256", "\"<s>\": 255"),
            "tokenizer: t: token \"<s>\" has the number 255 in the vocabulary, 256 among the "
            "added tokens");
  EXPECT_EQ(refusal("\"content\": \"<s>\"", "\"content\": 7"),
            "tokenizer: t: expected \"content\" to be a text, got the number 7");
  EXPECT_EQ(refusal("\"merges\": []", "\"merges\": [\"A B\"]"),
            "tokenizer: t: merge 0 gives \"AB\", which is no token");
  EXPECT_EQ(refusal("\"merges\": []", "\"merges\": [\"AB\"]"),
            "tokenizer: t: merge 0: expected two tokens with a blank between, got \"AB\"");
  EXPECT_EQ(refusal("\"merges\": []", "\"merges\": [[\"A\", \"xyz\"]]"),
            "tokenizer: t: merge 0: expected tokens of the vocabulary, got \"xyz\"");
}

// " " is spelled "\u0120".
TEST(TokenizerFile, IsNotWrittenWhereTwoTokensAreSpelledAlike) {
  EXPECT_EQ(error_text([] { format_tokenizer(byte_tokenizer({"\u0120"})); }),
            "tokenizer: tokens 32 and 256 are both spelled \"\u0120\", no file can hold both");
}

TEST(TokenizerFile, HoldsMergesOfSpecialsWithBlanks) {
  TokenTable table = byte_tokenizer({"a b"}).table();
  table.tokens.push_back("a bc");
  table.merges.push_back({256, 'c'});
  const Tokenizer tokenizer(table);
  EXPECT_EQ(parse_tokenizer(format_tokenizer(tokenizer), "t").table(), table);
}

TEST(TokenizerFile, CutShortAnywhereIsRefused) {
  const std::string text = format_tokenizer(byte_tokenizer({"<s>"}));
  for (size_t size = 0; size + 2 < text.size(); size += 7) {
    EXPECT_THROW(parse_tokenizer(std::string_view(text).substr(0, size), "t"), Error) << size;
  }
}

}  // namespace
}  // namespace tessera
