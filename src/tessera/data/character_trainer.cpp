#include "tessera/data/character_trainer.h"

#include <array>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/data/characters.h"
#include "tessera/data/special_tokens.h"
#include "tessera/io/utf8.h"

namespace tessera {

CharacterTrainer::CharacterTrainer(CharacterOptions options) : options_(std::move(options)) {
  check_specials(options_.specials);
}

void CharacterTrainer::add(std::string_view text) {
  std::array<bool, 128> ascii = {};  // most text is nothing else, and a set is slow
  const auto add_part = [&](size_t offset, std::string_view part) {
    for (size_t at = 0; at < part.size();) {
      const Character c = first_character(part.substr(at));
      if (c.code == Character::kInvalid) {
        fail("characters: byte ", offset + at, ": expected UTF-8, got byte ",
             int(uint8_t(part[at])));
      }
      if (c.code < ascii.size()) {
        ascii[c.code] = true;
      } else {
        found_.insert(c.code);
      }
      at += c.length;
    }
  };
  cut_at_specials(text, options_.specials, add_part, [](size_t) {});
  for (char32_t code = 0; code < ascii.size(); ++code) {
    if (ascii[code]) found_.insert(code);
  }
}

Tokenizer CharacterTrainer::train() const {
  if (found_.empty()) fail("characters: expected a text with characters, got none");
  TokenTable table{.unit = TokenTable::Unit::character};
  for (const char32_t code : found_) append_utf8(table.tokens.emplace_back(), code);
  if (!options_.unknown.empty()) {
    table.unknown = int32_t(table.tokens.size());
    table.tokens.push_back(options_.unknown);
  }
  append_specials(table, options_.specials);
  return Tokenizer(std::move(table), "characters");
}

}  // namespace tessera
