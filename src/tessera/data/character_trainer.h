// Makes a tokenizer of the characters of a text.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/data/tokenizer.h"

namespace tessera {

struct CharacterOptions {
  std::string unknown = {};  // such as "<unk>": a token for characters the text does not have
  std::vector<std::string> specials = {};
};

class CharacterTrainer {
 public:
  explicit CharacterTrainer(CharacterOptions options = {});

  // May be called again, with more text. Throws where it is no UTF-8, naming the byte.
  void add(std::string_view text);

  // Characters by code point, then the unknown, then the specials. Throws without any character.
  Tokenizer train() const;

 private:
  CharacterOptions options_;
  std::set<char32_t> found_;
};

}  // namespace tessera
