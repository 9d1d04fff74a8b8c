#include "tessera/data/characters.h"

#include <algorithm>
#include <array>

#include "tessera/io/utf8.h"

namespace tessera {

namespace {

struct Range {
  char32_t first, last;
  CharacterClass kind;
};

constexpr CharacterClass L = CharacterClass::letter, N = CharacterClass::number;

// clang-format off
constexpr Range kRanges[] = {
#include "tessera/data/unicode_ranges.inc"
};
// clang-format on

bool is_space(char32_t code) {
  constexpr std::array<Range, 10> kSpaces = {{
      {0x9, 0xD, CharacterClass::space},
      {0x20, 0x20, CharacterClass::space},
      {0x85, 0x85, CharacterClass::space},
      {0xA0, 0xA0, CharacterClass::space},
      {0x1680, 0x1680, CharacterClass::space},
      {0x2000, 0x200A, CharacterClass::space},
      {0x2028, 0x2029, CharacterClass::space},
      {0x202F, 0x202F, CharacterClass::space},
      {0x205F, 0x205F, CharacterClass::space},
      {0x3000, 0x3000, CharacterClass::space},
  }};
  return std::ranges::any_of(
      kSpaces, [&](const Range& range) { return range.first <= code && code <= range.last; });
}

CharacterClass search_class(char32_t code) {
  const Range* after = std::ranges::upper_bound(kRanges, code, {}, &Range::first);
  if (after != std::begin(kRanges) && code <= after[-1].last) return after[-1].kind;
  return is_space(code) ? CharacterClass::space : CharacterClass::other;
}

constexpr char32_t kTabled = 0x800;  // code points of one or two bytes of UTF-8

}  // namespace

Character first_character(std::string_view text) {
  const auto byte = [&](size_t i) { return char32_t(uint8_t(text[i])); };
  if (byte(0) < 0x80) return {1, byte(0)};
  const size_t length = utf8_length(text);
  if (length == 0) return {1, Character::kInvalid};
  char32_t code = byte(0) & (0x7Fu >> length);
  for (size_t i = 1; i < length; ++i) code = code << 6 | (byte(i) & 0x3F);
  return {length, code};
}

CharacterClass class_of(char32_t code) {
  static const auto kTable = [] {
    std::array<CharacterClass, kTabled> table;
    for (char32_t c = 0; c < kTabled; ++c) table[c] = search_class(c);
    return table;
  }();
  return code < kTabled ? kTable[code] : search_class(code);
}

}  // namespace tessera
