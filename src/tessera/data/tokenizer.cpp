#include "tessera/data/tokenizer.h"

#include <array>
#include <unordered_map>

#include "tessera/base/error.h"
#include "tessera/base/thread_pool.h"
#include "tessera/data/characters.h"
#include "tessera/data/gpt2_words.h"
#include "tessera/data/merges.h"
#include "tessera/data/special_tokens.h"
#include "tessera/io/json.h"

namespace tessera {

namespace {

constexpr size_t kPiece = size_t(1) << 20;  // bytes of text that are worth a task

}  // namespace

struct Tokenizer::State {
  State(TokenTable given, std::string_view name);

  void check_tokens(std::string_view name);
  void index_units(std::string_view name);
  void index_merges(std::string_view name);

  void encode_plain(size_t offset, std::string_view text, std::vector<int32_t>& out) const;
  void encode_characters(size_t offset, std::string_view text, std::vector<int32_t>& out) const;
  void encode_bytes(std::string_view text, std::vector<int32_t>& out) const;
  void encode_words(std::string_view text, std::vector<int32_t>& out) const;

  TokenTable table;
  std::vector<std::string> specials;                       // the texts of table.specials
  std::unordered_map<std::string_view, int32_t> ordinary;  // all others but the unknown, by bytes
  std::array<int32_t, 256> byte_tokens = {};
  std::unordered_map<char32_t, int32_t> characters;
  Merges merges;
};

Tokenizer::State::State(TokenTable given, std::string_view name) : table(std::move(given)) {
  check_tokens(name);
  index_units(name);
  index_merges(name);
}

void Tokenizer::State::check_tokens(std::string_view name) {
  const auto count = int32_t(table.tokens.size());
  std::vector<bool> set_apart(table.tokens.size());
  const auto set = [&](int32_t token, std::string_view role) {
    if (token < 0 || token >= count) {
      fail("tokenizer: ", name, ": expected the ", role, " token to be 0 to ", count - 1, ", got ",
           token);
    }
    set_apart[size_t(token)] = true;
  };
  if (table.unknown) {
    if (table.unit != TokenTable::Unit::character) {
      fail("tokenizer: ", name, ": expected no unknown token beside 256 bytes, got ",
           *table.unknown);
    }
    set(*table.unknown, "unknown");
  }
  for (const int32_t special : table.specials) {
    set(special, "special");
    specials.push_back(table.tokens[size_t(special)]);
  }
  std::unordered_map<std::string_view, int32_t> seen;
  for (int32_t i = 0; i < count; ++i) {
    const std::string& text = table.tokens[size_t(i)];
    if (text.empty()) fail("tokenizer: ", name, ": token ", i, " is empty");
    const auto [twin, fresh] = seen.emplace(text, i);
    if (!fresh) {
      fail("tokenizer: ", name, ": tokens ", twin->second, " and ", i, " are both ",
           quote_for_error(text));
    }
    if (!set_apart[size_t(i)]) ordinary.emplace(text, i);
  }
}

void Tokenizer::State::index_units(std::string_view name) {
  if (table.unit == TokenTable::Unit::byte) {
    for (size_t byte = 0; byte < byte_tokens.size(); ++byte) {
      const auto token = ordinary.find(std::string(1, char(byte)));
      if (token == ordinary.end()) {
        fail("tokenizer: ", name, ": expected a token for every byte, got none for ", byte);
      }
      byte_tokens[byte] = token->second;
    }
    return;
  }
  for (const auto& [text, token] : ordinary) {
    const Character c = first_character(text);
    if (c.code == Character::kInvalid || c.length != text.size()) {
      fail("tokenizer: ", name, ": expected token ", token, " to be one character, got ",
           quote_for_error(text));
    }
    characters.emplace(c.code, token);
  }
}

void Tokenizer::State::index_merges(std::string_view name) {
  if (table.unit == TokenTable::Unit::character && !table.merges.empty()) {
    fail("tokenizer: ", name, ": expected no merges of characters, got ", table.merges.size());
  }
  const auto count = int32_t(table.tokens.size());
  for (size_t rank = 0; rank < table.merges.size(); ++rank) {
    const TokenPair pair = table.merges[rank];
    if (pair.left < 0 || pair.left >= count || pair.right < 0 || pair.right >= count) {
      fail("tokenizer: ", name, ": merge ", rank, ": expected tokens from 0 to ", count - 1,
           ", got ", pair.left, " and ", pair.right);
    }
    const std::string text = table.tokens[size_t(pair.left)] + table.tokens[size_t(pair.right)];
    const auto result = ordinary.find(text);
    if (result == ordinary.end()) {
      fail("tokenizer: ", name, ": merge ", rank, " gives ", quote_for_error(text),
           ", which is no token");
    }
    if (merges.contains(pair)) fail("tokenizer: ", name, ": merge ", rank, " is there already");
    merges.add(pair, int32_t(rank), result->second);
  }
}

void Tokenizer::State::encode_plain(size_t offset, std::string_view text,
                                    std::vector<int32_t>& out) const {
  if (table.unit == TokenTable::Unit::character) return encode_characters(offset, text, out);
  if (merges.empty()) return encode_bytes(text, out);
  const std::vector<std::string_view> pieces = cut_between_words(text, kPiece);
  std::vector<std::vector<int32_t>> parts(pieces.size());
  thread_pool().parallel_for(int64_t(pieces.size()), 1, [&](int64_t begin, int64_t end) {
    for (auto i = size_t(begin); i < size_t(end); ++i) encode_words(pieces[i], parts[i]);
  });
  for (const std::vector<int32_t>& part : parts) out.insert(out.end(), part.begin(), part.end());
}

void Tokenizer::State::encode_characters(size_t offset, std::string_view text,
                                         std::vector<int32_t>& out) const {
  for (size_t at = 0; at < text.size();) {
    const Character c = first_character(text.substr(at));
    const auto token = characters.find(c.code);
    if (token == characters.end() && !table.unknown) {
      fail("tokenizer: byte ", offset + at, ": expected one of ", characters.size(),
           " known characters, got ", quote_for_error(text.substr(at, c.length)));
    }
    out.push_back(token == characters.end() ? *table.unknown : token->second);
    at += c.length;
  }
}

void Tokenizer::State::encode_bytes(std::string_view text, std::vector<int32_t>& out) const {
  for (const char c : text) out.push_back(byte_tokens[uint8_t(c)]);
}

void Tokenizer::State::encode_words(std::string_view text, std::vector<int32_t>& out) const {
  struct Stretch {  // of `out`, where the word's tokens lie since its first occurrence
    size_t begin, end;
  };
  std::unordered_map<std::string_view, Stretch> known;
  std::vector<int32_t> bytes;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, first_word_length(text));
    text.remove_prefix(word.size());
    const auto [place, fresh] = known.emplace(word, Stretch{out.size(), 0});
    Stretch& stretch = place->second;
    if (fresh) {
      bytes.clear();
      encode_bytes(word, bytes);
      merges.apply(bytes, out);
      stretch.end = out.size();
      continue;
    }
    for (size_t i = stretch.begin; i < stretch.end; ++i) out.push_back(out[i]);
  }
}

Tokenizer::Tokenizer(TokenTable table, std::string_view name)
    : state_(std::make_shared<State>(std::move(table), name)) {}

int64_t Tokenizer::size() const { return int64_t(state_->table.tokens.size()); }

const TokenTable& Tokenizer::table() const { return state_->table; }

std::vector<int32_t> Tokenizer::encode(std::string_view text) const {
  std::vector<int32_t> tokens;
  cut_at_specials(
      text, state_->specials,
      [&](size_t offset, std::string_view part) { state_->encode_plain(offset, part, tokens); },
      [&](size_t index) { tokens.push_back(state_->table.specials[index]); });
  return tokens;
}

std::string Tokenizer::decode(std::span<const int32_t> tokens) const {
  std::string text;
  for (const int32_t token : tokens) {
    if (token < 0 || token >= size()) {
      fail("decode: expected tokens from 0 to ", size() - 1, ", got ", token);
    }
    text += state_->table.tokens[size_t(token)];
  }
  return text;
}

int32_t Tokenizer::special(std::string_view text) const {
  for (const int32_t token : state_->table.specials) {
    if (state_->table.tokens[size_t(token)] == text) return token;
  }
  fail("tokenizer: expected a special token ", quote_for_error(text), ", got a vocabulary of ",
       size(), " without it");
}

Tokenizer byte_tokenizer(std::vector<std::string> specials) {
  TokenTable table;
  for (int byte = 0; byte < 256; ++byte) table.tokens.emplace_back(1, char(byte));
  append_specials(table, specials);
  return Tokenizer(std::move(table));
}

void append_specials(TokenTable& table, const std::vector<std::string>& specials) {
  for (const std::string& special : specials) {
    table.specials.push_back(int32_t(table.tokens.size()));
    table.tokens.push_back(special);
  }
}

}  // namespace tessera
