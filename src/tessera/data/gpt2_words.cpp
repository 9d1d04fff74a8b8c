#include "tessera/data/gpt2_words.h"

#include <algorithm>

#include "tessera/data/characters.h"
#include "tessera/io/utf8.h"

namespace tessera {

namespace {

constexpr std::array<std::string_view, 7> kContractions = {"'s", "'t",  "'re", "'ve",
                                                           "'m", "'ll", "'d"};

// Characters of one class that `text` begins with.
struct Run {
  size_t bytes = 0, last = 0;  // of all, and of the last character
};
Run run_of(std::string_view text, CharacterClass kind) {
  Run run;
  while (run.bytes < text.size()) {
    const Character c = first_character(text.substr(run.bytes));
    if (class_of(c.code) != kind) break;
    run.last = c.length;
    run.bytes += c.length;
  }
  return run;
}

bool is_visible(int byte) { return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte != 0xAD); }

struct Spelling {
  std::array<uint8_t, 256> order = {};
  std::array<std::string, 256> of_byte;
  std::array<int16_t, 512> byte_of = {};  // by code point; -1 for none
};

const Spelling& spelling() {
  static const Spelling kSpelling = [] {
    Spelling made;
    made.byte_of.fill(-1);
    size_t count = 0;
    const auto add = [&](int byte, char32_t code) {
      made.order[count++] = uint8_t(byte);
      append_utf8(made.of_byte[size_t(byte)], code);
      made.byte_of[code] = int16_t(byte);
    };
    for (int byte = 0; byte < 256; ++byte) {
      if (is_visible(byte)) add(byte, char32_t(byte));
    }
    char32_t unused = 0x100;
    for (int byte = 0; byte < 256; ++byte) {
      if (!is_visible(byte)) add(byte, unused++);
    }
    return made;
  }();
  return kSpelling;
}

}  // namespace

size_t first_word_length(std::string_view text) {
  for (const std::string_view contraction : kContractions) {
    if (text.starts_with(contraction)) return contraction.size();
  }
  const size_t blank = text[0] == ' ' && text.size() > 1 ? 1 : 0;
  const std::string_view rest = text.substr(blank);
  const CharacterClass kind = class_of(first_character(rest).code);
  if (kind != CharacterClass::space) return blank + run_of(rest, kind).bytes;
  // All spaces before the end of the text, or all but the last, which goes with what follows.
  const Run run = run_of(text, CharacterClass::space);
  const bool at_end = run.bytes == text.size();
  return at_end || run.bytes == run.last ? run.bytes : run.bytes - run.last;
}

std::vector<std::string_view> cut_between_words(std::string_view text, size_t size) {
  // A line break after a byte that is no space begins a word: only a blank may precede the rest of
  // a word, no word but spaces holds a line break, and no rule looks back. Of multi-byte spaces,
  // only ASCII's are told apart here: a byte of 0x80 or more is not trusted.
  const auto is_border = [&](size_t at) {
    const auto before = uint8_t(text[at - 1]);
    return text[at] == '\n' && before < 0x80 && class_of(before) != CharacterClass::space;
  };
  std::vector<std::string_view> pieces;
  while (!text.empty()) {
    size_t at = size;
    while (at < text.size() && !(at > 0 && is_border(at))) ++at;
    at = std::min(at, text.size());
    pieces.push_back(text.substr(0, at));
    text.remove_prefix(at);
  }
  return pieces;
}

const std::array<uint8_t, 256>& gpt2_byte_order() { return spelling().order; }

std::string spell_bytes(std::string_view bytes) {
  std::string spelled;
  for (const char c : bytes) spelled += spelling().of_byte[uint8_t(c)];
  return spelled;
}

std::optional<std::string> unspell_bytes(std::string_view spelled) {
  std::string bytes;
  while (!spelled.empty()) {
    const Character c = first_character(spelled);
    if (c.code >= spelling().byte_of.size() || spelling().byte_of[c.code] < 0) return std::nullopt;
    bytes += char(spelling().byte_of[c.code]);
    spelled.remove_prefix(c.length);
  }
  return bytes;
}

}  // namespace tessera
