#include "tessera/io/utf8.h"

#include <array>
#include <cstdint>

#include "tessera/base/error.h"

namespace tessera {

namespace {

// What a first byte announces, and which second bytes it allows: those exclude the longer forms
// (after E0 and F0), surrogates (after ED) and code points above U+10FFFF (after F4).
struct Row {
  uint8_t first, last;
  size_t length;
  uint8_t second_from, second_to;
};

constexpr std::array<Row, 9> kRows = {{
    {0x00, 0x7F, 1, 0x80, 0xBF},
    {0xC2, 0xDF, 2, 0x80, 0xBF},
    {0xE0, 0xE0, 3, 0xA0, 0xBF},
    {0xE1, 0xEC, 3, 0x80, 0xBF},
    {0xED, 0xED, 3, 0x80, 0x9F},
    {0xEE, 0xEF, 3, 0x80, 0xBF},
    {0xF0, 0xF0, 4, 0x90, 0xBF},
    {0xF1, 0xF3, 4, 0x80, 0xBF},
    {0xF4, 0xF4, 4, 0x80, 0x8F},
}};

bool is_between(char c, uint8_t from, uint8_t to) { return uint8_t(c) >= from && uint8_t(c) <= to; }

}  // namespace

size_t utf8_length(std::string_view text) {
  if (text.empty()) return 0;
  if (is_between(text[0], 0x00, 0x7F)) return 1;
  for (const Row& row : kRows) {
    if (!is_between(text[0], row.first, row.last)) continue;
    if (text.size() < row.length || !is_between(text[1], row.second_from, row.second_to)) return 0;
    for (size_t i = 2; i < row.length; ++i) {
      if (!is_between(text[i], 0x80, 0xBF)) return 0;
    }
    return row.length;
  }
  return 0;
}

void append_utf8(std::string& text, char32_t code_point) {
  TESSERA_ASSERT(code_point <= 0x10FFFF && (code_point < 0xD800 || code_point > 0xDFFF));
  const auto tail = [&](int shift) { text += char(0x80 | ((code_point >> shift) & 0x3F)); };
  if (code_point < 0x80) {
    text += char(code_point);
  } else if (code_point < 0x800) {
    text += char(0xC0 | (code_point >> 6));
    tail(0);
  } else if (code_point < 0x10000) {
    text += char(0xE0 | (code_point >> 12));
    tail(6);
    tail(0);
  } else {
    text += char(0xF0 | (code_point >> 18));
    tail(12);
    tail(6);
    tail(0);
  }
}

size_t find_invalid_utf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const size_t length = utf8_length(text.substr(at));
    if (length == 0) return at;
    at += length;
  }
  return std::string_view::npos;
}

}  // namespace tessera
