// GPT-2's two conventions for byte-level tokens: where a text is cut into words before pairs are
// merged, and how bytes are spelled in files.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

// The bytes of the first word of `text`, by the pattern
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
// Words follow one another without a gap; no merge crosses their borders. A byte that is no UTF-8
// counts as a character that is neither space, letter nor number. REQUIRES: text is not empty.
size_t first_word_length(std::string_view text);

// `text` in pieces of at least `size` bytes (but the last), cut only where words begin whatever
// surrounds them, so that the words of the pieces are those of the text.
std::vector<std::string_view> cut_between_words(std::string_view text, size_t size);

// GPT-2 spells a byte as a visible character: itself in Latin-1 where that is visible, otherwise
// the next unused one from U+0100 on. This is the order of those characters, and so of GPT-2's
// first 256 tokens.
const std::array<uint8_t, 256>& gpt2_byte_order();

std::string spell_bytes(std::string_view bytes);
// Nothing when a character of the spelling stands for no byte.
std::optional<std::string> unspell_bytes(std::string_view spelling);

}  // namespace tessera
