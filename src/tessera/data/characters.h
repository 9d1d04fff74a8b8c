// Characters of a text that may hold any bytes, and their classes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tessera {

struct Character {
  static constexpr char32_t kInvalid = 0xFFFFFFFF;

  size_t length;  // bytes
  char32_t code;  // kInvalid, with a length of 1, for a byte that begins no UTF-8 character
};

// The character that `text` begins with. REQUIRES: text is not empty.
Character first_character(std::string_view text);

// Unicode's general categories L and N, and its property White_Space. All else is `other`, bytes
// that are no UTF-8 included.
enum class CharacterClass : uint8_t { other, letter, number, space };

CharacterClass class_of(char32_t code);

}  // namespace tessera
