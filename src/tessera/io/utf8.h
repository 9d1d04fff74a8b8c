// UTF-8, one character at a time.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tessera {

// The bytes of the character that `text` begins with: 1 to 4, or 0 when it begins with none. Longer
// forms than needed, surrogates and code points above U+10FFFF are no characters.
size_t utf8_length(std::string_view text);

// REQUIRES: a code point that is no surrogate and at most 0x10FFFF.
void append_utf8(std::string& text, char32_t code_point);

// The offset of the first byte that is not part of a character; npos when there is none.
size_t find_invalid_utf8(std::string_view text);

}  // namespace tessera
