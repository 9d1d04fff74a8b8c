// Text to token numbers and back. A tokenizer is a table: what each token stands for, and which
// pairs of tokens are merged. Three kinds differ in nothing but that table:
//
//   characters   a token for each character (Unicode code point) of the text it was made from
//   bytes        a token for each of the 256 bytes, whose number is the byte
//   byte-level BPE   256 bytes, and merges of what is frequent, inside words as GPT-2 cuts them
//
// clang-format off
//   BpeTrainer trainer({.vocab_size = 4096, .specials = {"<|endoftext|>"}});
//   trainer.add(text);
//   const Tokenizer tokenizer = trainer.train();
//   const std::vector<int32_t> tokens = tokenizer.encode("Any bytes.");   // decode() gives them back
// clang-format on
//
// With a table of bytes, decode(encode(x)) == x for every string x, invalid UTF-8 included.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/data/pair_map.h"

namespace tessera {

struct TokenTable {
  enum class Unit { character, byte };  // what a text consists of before anything is merged

  Unit unit = Unit::byte;
  std::vector<std::string> tokens = {};  // the bytes of each
  std::vector<TokenPair> merges = {};    // the first is tried first; the result is a token, too
  std::vector<int32_t> specials = {};   // found in the text before anything else, the longest first
  std::optional<int32_t> unknown = {};  // with characters: stands for any that has no token

  bool operator==(const TokenTable&) const = default;
};

// Cheap to copy; thread safe.
class Tokenizer {
 public:
  // Throws "tokenizer: <name>: ..." for a table that cannot work: no token for some byte, an empty
  // or repeated token, a merge whose result is no token, a number outside.
  explicit Tokenizer(TokenTable table, std::string_view name = "table");

  int64_t size() const;  // of the vocabulary
  const TokenTable& table() const;

  // Uses the process-wide pool for long texts. With characters, throws for one without a token,
  // naming its byte, unless the table has a token for unknown ones.
  std::vector<int32_t> encode(std::string_view text) const;

  // The bytes of the tokens, one after the other. Throws for a number outside the vocabulary.
  std::string decode(std::span<const int32_t> tokens) const;

  // The number of a special token; throws when there is none of that text.
  int32_t special(std::string_view text) const;

 private:
  struct State;
  std::shared_ptr<const State> state_;
};

Tokenizer byte_tokenizer(std::vector<std::string> specials = {});

// Adds specials at the end of a table, for trainers.
void append_specials(TokenTable& table, const std::vector<std::string>& specials);

}  // namespace tessera
