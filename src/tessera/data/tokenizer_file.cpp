#include "tessera/data/tokenizer_file.h"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "tessera/base/error.h"
#include "tessera/data/gpt2_words.h"
#include "tessera/io/atomic_file.h"
#include "tessera/io/json.h"
#include "tessera/io/mapped_file.h"

namespace tessera {

namespace {

constexpr std::string_view kEndOfText = "<|endoftext|>";

template <class... Args>
[[noreturn]] void refuse(std::string_view name, const Args&... args) {
  fail("tokenizer: ", name, ": ", args...);
}

// What an entry may be, in the words of an error.
struct Field {
  std::string_view key;
  Json usual;             // what it is when absent, and what is written
  Json::Array also = {};  // other values that mean the same
};

// Every member must be in `fields`, with a value that is allowed there, or in `elsewhere`.
void check_fields(const Json& object, std::string_view name, std::string_view what,
                  const std::vector<Field>& fields,
                  const std::vector<std::string_view>& elsewhere) {
  for (const auto& [key, value] : object.as_object(what)) {
    if (std::ranges::find(elsewhere, key) != elsewhere.end()) continue;
    const auto field = std::ranges::find(fields, key, &Field::key);
    if (field == fields.end()) {
      refuse(name, what, " has a field that is not known here: ", quote_for_error(key));
    }
    if (value == field->usual || std::ranges::find(field->also, value) != field->also.end()) {
      continue;
    }
    refuse(name, "expected ", quote_for_error(key), " of ", what, " to be ", field->usual.dump(),
           ", got ", value.describe());
  }
}

const std::vector<Field>& file_fields() {
  static const std::vector<Field> kFields = {
      {"version", "1.0"}, {"truncation", nullptr}, {"padding", nullptr}, {"normalizer", nullptr}};
  return kFields;
}

const std::vector<Field>& model_fields() {
  static const std::vector<Field> kFields = {
      {"type", "BPE"},
      {"dropout", nullptr, {0.0, 0}},
      {"continuing_subword_prefix", nullptr, {""}},
      {"end_of_word_suffix", nullptr, {""}},
      {"fuse_unk", false},
      {"byte_fallback", false},
      {"ignore_merges", false},
  };
  return kFields;
}

const std::vector<Field>& special_fields() {
  static const std::vector<Field> kFields = {{"single_word", false},
                                             {"lstrip", false},
                                             {"rstrip", false},
                                             {"normalized", false, {true}},
                                             {"special", true, {false}}};
  return kFields;
}

// With add_prefix_space the text would be changed; the other two change offsets, which we have not.
const std::vector<Field>& byte_level_fields() {
  static const std::vector<Field> kFields = {{"type", "ByteLevel"},
                                             {"add_prefix_space", false},
                                             {"trim_offsets", true, {false}},
                                             {"use_regex", true}};
  return kFields;
}

Json usual(const std::vector<Field>& fields) {
  Json object = Json::object();
  for (const Field& field : fields) object.set(field.key, field.usual);
  return object;
}

// Gathers tokens in any order into a table without holes.
class TableReader {
 public:
  // At most `most` tokens will come, so their numbers are below that.
  TableReader(TokenTable::Unit unit, size_t most, std::string_view name)
      : name_(name), most_(int64_t(most)) {
    table_.unit = unit;
  }

  void add_special(const Json& entry) {
    const std::string content = text_of(entry, "content");
    check_fields(entry, name_, "an added token", special_fields(), {"id", "content"});
    const int32_t number = token_number(entry["id"], content);
    put(content, number, content);
    table_.specials.push_back(number);
  }

  void add_vocabulary(const Json& vocab, std::string_view unknown) {
    for (const auto& [key, value] : vocab.as_object("vocab")) {
      const int32_t number = token_number(value, key);
      numbers_.emplace(key, number);
      const auto text_of_special = [&](int32_t token) -> const std::string& {
        return table_.tokens[size_t(token)];
      };
      const auto special = std::ranges::find(table_.specials, key, text_of_special);
      if (special != table_.specials.end()) {
        if (*special == number) continue;
        refuse(name_, "token ", quote_for_error(key), " has the number ", number,
               " in the vocabulary, ", *special, " among the added tokens");
      }
      if (table_.unit == TokenTable::Unit::character && !unknown.empty() && key == unknown) {
        table_.unknown = number;
      }
      put(key, number, bytes_of_key(key));
    }
  }

  void add_merge(std::string_view left, std::string_view right, size_t rank) {
    const auto find = [&](std::string_view part) {
      const auto number = numbers_.find(std::string(part));
      if (number == numbers_.end()) {
        refuse(name_, "merge ", rank, ": expected tokens of the vocabulary, got ",
               quote_for_error(part));
      }
      return number->second;
    };
    table_.merges.push_back({find(left), find(right)});
  }
  void add_merge(std::string_view both, size_t rank) {
    const size_t blank = both.find(' ');
    if (blank == std::string_view::npos || both.find(' ', blank + 1) != std::string_view::npos) {
      refuse(name_, "merge ", rank, ": expected two tokens with a blank between, got ",
             quote_for_error(both));
    }
    add_merge(both.substr(0, blank), both.substr(blank + 1), rank);
  }

  Tokenizer finish() {
    for (size_t i = 0; i < table_.tokens.size(); ++i) {
      if (table_.tokens[i].empty()) refuse(name_, "no token has the number ", i);
    }
    return Tokenizer(std::move(table_), name_);
  }

  const std::string& text_of(const Json& object, std::string_view key) const {
    const Json& value = object[key];
    if (!value.is_string() || value.as_string().empty()) {
      refuse(name_, "expected ", quote_for_error(key), " to be a text, got ", value.describe());
    }
    return value.as_string();
  }

  void mark_special(std::string_view text) {
    if (const auto number = numbers_.find(std::string(text)); number != numbers_.end()) {
      table_.specials.push_back(number->second);
    }
  }

 private:
  int32_t token_number(const Json& value, std::string_view text) const {
    if (!value.is_int() || value.as_int() < 0 || value.as_int() >= most_) {
      refuse(name_, "expected the number of token ", quote_for_error(text), " to be 0 to ",
             most_ - 1, ", got ", value.describe());
    }
    return int32_t(value.as_int());
  }

  std::string bytes_of_key(const std::string& key) const {
    if (table_.unit == TokenTable::Unit::character) return key;
    const std::optional<std::string> bytes = unspell_bytes(key);
    if (!bytes) refuse(name_, "token ", quote_for_error(key), " is no spelling of bytes");
    return *bytes;
  }

  void put(std::string_view key, int32_t number, std::string bytes) {
    if (bytes.empty()) refuse(name_, "token ", number, " has no text");
    const auto at = size_t(number);
    if (at >= table_.tokens.size()) table_.tokens.resize(at + 1);
    if (!table_.tokens[at].empty()) {
      refuse(name_, "two tokens have the number ", number, "; one is ", quote_for_error(key));
    }
    table_.tokens[at] = std::move(bytes);
  }

  std::string name_;
  int64_t most_;
  TokenTable table_;
  std::unordered_map<std::string, int32_t> numbers_;  // as spelled in the vocabulary
};

bool is_type(const Json& object, std::string_view type) { return object["type"] == Json(type); }

// Bytes or characters, by what stands around the model.
TokenTable::Unit unit_of(const Json& file, std::string_view name) {
  const Json& words = file["pre_tokenizer"];
  const Json& decoder = file["decoder"];
  const Json& after = file["post_processor"];
  if (words.is_null() && is_type(decoder, "Fuse") && after.is_null()) {
    return TokenTable::Unit::character;
  }
  if (!is_type(words, "ByteLevel") || !is_type(decoder, "ByteLevel")) {
    refuse(name, "expected pre-tokenizer and decoder ByteLevel, or none and Fuse, got ",
           words["type"].describe(), " and ", decoder["type"].describe());
  }
  check_fields(words, name, "the pre-tokenizer", byte_level_fields(), {});
  // What a decoder or a post-processor of this type says about spaces and patterns has no effect.
  if (!after.is_null() && !is_type(after, "ByteLevel")) {
    refuse(name, "expected no post-processor but ByteLevel, got ", after["type"].describe());
  }
  return TokenTable::Unit::byte;
}

std::string spelled(const TokenTable& table, int32_t token) {
  const std::string& text = table.tokens[size_t(token)];
  const bool verbatim = table.unit == TokenTable::Unit::character ||
                        std::ranges::find(table.specials, token) != table.specials.end();
  return verbatim ? text : spell_bytes(text);
}

// As a pair where a blank, which only special tokens have, would not tell where the first one ends.
Json merge_json(const std::string& left, const std::string& right) {
  const std::string both = cat(left, ' ', right);
  if (std::ranges::count(both, ' ') == 1) return both;
  Json pair = Json::array();
  pair.push(left).push(right);
  return pair;
}

Json model_json(const TokenTable& table) {
  Json model = usual(model_fields());
  model.set("unk_token", table.unknown ? Json(table.tokens[size_t(*table.unknown)]) : Json());
  Json::Object vocab;
  std::unordered_map<std::string, int32_t> numbers;
  for (int32_t i = 0; i < int32_t(table.tokens.size()); ++i) {
    const std::string key = spelled(table, i);
    const auto [twin, fresh] = numbers.emplace(key, i);
    if (!fresh) {
      fail("tokenizer: tokens ", twin->second, " and ", i, " are both spelled ",
           quote_for_error(key), ", no file can hold both");
    }
    vocab.emplace_back(key, i);
  }
  Json::Array merges;
  for (const TokenPair& pair : table.merges) {
    merges.push_back(merge_json(spelled(table, pair.left), spelled(table, pair.right)));
  }
  model.set("vocab", std::move(vocab));
  model.set("merges", std::move(merges));
  return model;
}

std::string_view text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

std::string quoted(const std::filesystem::path& path) { return cat("'", path.native(), "'"); }

}  // namespace

Tokenizer parse_tokenizer(std::string_view json, std::string_view name) {
  const Json file = Json::parse(json, name, "tokenizer");
  if (!file.is_object()) refuse(name, "expected an object, got ", file.describe());
  check_fields(file, name, "the file", file_fields(),
               {"added_tokens", "pre_tokenizer", "post_processor", "decoder", "model"});
  const Json& model = file["model"];
  if (!model["vocab"].is_object() || !model["merges"].is_array()) {
    refuse(name, "expected a model with a vocabulary and merges, got ", model.describe());
  }
  check_fields(model, name, "the model", model_fields(), {"unk_token", "vocab", "merges"});
  const Json none = Json::array();
  const Json& added = file["added_tokens"].is_null() ? none : file["added_tokens"];
  const size_t most = added.as_array("added_tokens").size() + model["vocab"].as_object().size();
  TableReader reader(unit_of(file, name), most, name);
  for (const Json& entry : added.as_array()) reader.add_special(entry);
  const Json& unknown = model["unk_token"];
  reader.add_vocabulary(model["vocab"],
                        unknown.is_null() ? "" : reader.text_of(model, "unk_token"));
  size_t rank = 0;
  for (const Json& merge : model["merges"].as_array()) {
    if (merge.is_array() && merge.as_array().size() == 2) {  // as newer writers have it
      reader.add_merge(merge.at(0).as_string("merge"), merge.at(1).as_string("merge"), rank++);
    } else {
      reader.add_merge(merge.as_string("merge"), rank++);
    }
  }
  return reader.finish();
}

std::string format_tokenizer(const Tokenizer& tokenizer) {
  const TokenTable& table = tokenizer.table();
  const bool bytes = table.unit == TokenTable::Unit::byte;
  Json file = usual(file_fields());
  Json added = Json::array();
  for (const int32_t token : table.specials) {
    Json entry = Json::object();
    entry.set("id", token).set("content", table.tokens[size_t(token)]);
    for (const Field& field : special_fields()) entry.set(field.key, field.usual);
    added.push(std::move(entry));
  }
  Json fuse = Json::object();
  fuse.set("type", "Fuse");
  file.set("added_tokens", std::move(added));
  file.set("pre_tokenizer", bytes ? usual(byte_level_fields()) : Json());
  file.set("post_processor", nullptr);
  file.set("decoder", bytes ? usual(byte_level_fields()) : fuse);
  file.set("model", model_json(table));
  return file.dump(2) + "\n";
}

Tokenizer load_tokenizer(const std::filesystem::path& path) {
  const MappedFile file(path);
  return parse_tokenizer(text_of(file), quoted(path));
}

void save_tokenizer(const std::filesystem::path& path, const Tokenizer& tokenizer) {
  const std::string text = format_tokenizer(tokenizer);
  AtomicFile file(path);
  file.write(std::as_bytes(std::span(text)));
  file.commit();
}

Tokenizer load_gpt2_tokenizer(const std::filesystem::path& vocab,
                              const std::filesystem::path& merges) {
  const MappedFile vocab_file(vocab), merges_file(merges);
  const Json numbers = Json::parse(text_of(vocab_file), quoted(vocab), "tokenizer");
  TableReader reader(TokenTable::Unit::byte, numbers.as_object("vocab").size(), quoted(vocab));
  reader.add_vocabulary(numbers, "");
  reader.mark_special(kEndOfText);
  std::string_view lines = text_of(merges_file);
  size_t rank = 0;
  for (bool first = true; !lines.empty(); first = false) {
    const size_t end = std::min(lines.find('\n'), lines.size());
    const std::string_view line = lines.substr(0, end);
    lines.remove_prefix(std::min(end + 1, lines.size()));
    if (line.empty() || (first && line.starts_with("#version"))) continue;
    reader.add_merge(line, rank++);
  }
  return reader.finish();
}

}  // namespace tessera
