#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>

#include "tessera/base/error.h"
#include "tessera/io/json.h"
#include "tessera/io/utf8.h"

namespace tessera {

namespace {

bool is_space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_printable(char c) { return c >= ' ' && c <= '~'; }

// What a backslash and `c` stand for; 0 where no escape has that letter.
char unescaped(char c) {
  switch (c) {
    case '"': return '"';
    case '\\': return '\\';
    case '/': return '/';
    case 'b': return '\b';
    case 'f': return '\f';
    case 'n': return '\n';
    case 'r': return '\r';
    case 't': return '\t';
    default: return '\0';
  }
}

class Parser {
 public:
  Parser(std::string_view text, std::string_view name, std::string_view format)
      : text_(text), name_(name), format_(format) {}

  Json parse() {
    Json value = parse_value(0);
    skip_space();
    if (at_ < text_.size()) expected("the end after the value");
    return value;
  }

 private:
  [[noreturn]] void refuse_at(size_t offset, std::string_view sentence) const {
    fail(format_, ": ", name_, ": byte ", offset, ": ", sentence);
  }

  [[noreturn]] void expected(std::string_view what) const {
    refuse_at(at_, cat("expected ", what, ", got ", found()));
  }

  // The byte at hand, in words.
  std::string found() const {
    if (at_ >= text_.size()) return "the end of the text";
    const char c = text_[at_];
    if (is_printable(c)) return cat("'", c, "'");
    constexpr std::string_view kHex = "0123456789abcdef";
    return cat("byte 0x", kHex[uint8_t(c) >> 4], kHex[uint8_t(c) & 15]);
  }

  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  void skip_space() {
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
  }

  bool take(char c) {
    skip_space();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  Json parse_value(int depth) {
    skip_space();
    const char c = peek();
    if (c == '{' || c == '[') {
      if (depth == Json::kMaxDepth) {
        refuse_at(at_, cat("expected at most ", depth, " arrays and objects in one another"));
      }
      return c == '{' ? parse_object(depth) : parse_array(depth);
    }
    if (c == '"') return parse_string();
    if (c == '-' || is_digit(c)) return parse_number();
    for (const auto& [word, value] :
         {std::pair<std::string_view, Json>("null", nullptr), {"true", true}, {"false", false}}) {
      if (!text_.substr(at_).starts_with(word)) continue;
      at_ += word.size();
      return value;
    }
    expected("a value");
  }

  Json parse_array(int depth) {
    Json::Array array;
    take('[');
    if (take(']')) return array;
    while (true) {
      array.push_back(parse_value(depth + 1));
      if (take(']')) return array;
      if (!take(',')) expected("',' or ']'");
    }
  }

  Json parse_object(int depth) {
    Json::Object object;
    std::vector<size_t> offsets;  // of the keys
    take('{');
    if (take('}')) return object;
    while (true) {
      skip_space();
      if (peek() != '"') expected("a key in quotes");
      offsets.push_back(at_);
      std::string key = parse_string();
      if (!take(':')) expected("':' after the key");
      object.emplace_back(std::move(key), parse_value(depth + 1));
      if (take('}')) break;
      if (!take(',')) expected("',' or '}'");
    }
    check_keys(object, offsets);
    return object;
  }

  void check_keys(const Json::Object& object, const std::vector<size_t>& offsets) const {
    std::vector<size_t> order(object.size());
    std::iota(order.begin(), order.end(), size_t(0));
    std::ranges::stable_sort(order, {},
                             [&](size_t i) -> const std::string& { return object[i].first; });
    for (size_t i = 1; i < order.size(); ++i) {
      const std::string& key = object[order[i]].first;
      if (key != object[order[i - 1]].first) continue;
      refuse_at(offsets[order[i]],
                cat("expected every key of an object once, got ", quote_for_error(key), " again"));
    }
  }

  std::string parse_string() {
    std::string value;
    ++at_;  // the quote
    while (true) {
      const char c = peek();
      if (at_ < text_.size() && c == '"') break;
      if (at_ == text_.size() || uint8_t(c) < 0x20) expected("'\"' or a character of the string");
      if (c == '\\') {
        parse_escape(value);
        continue;
      }
      const size_t length = utf8_length(text_.substr(at_));
      if (length == 0) expected("UTF-8");
      value += text_.substr(at_, length);
      at_ += length;
    }
    ++at_;
    return value;
  }

  void parse_escape(std::string& value) {
    const size_t begin = at_++;
    if (peek() == 'u') {
      ++at_;
      append_utf8(value, parse_code_point(begin));
      return;
    }
    const char c = unescaped(peek());
    if (c == '\0') expected("an escape, one of \"\\/bfnrtu");
    value += c;
    ++at_;
  }

  // Behind "\u": one unit, or two when the first is the high half of a pair.
  char32_t parse_code_point(size_t begin) {
    const uint32_t unit = parse_hex();
    if (unit < 0xD800 || unit > 0xDFFF) return unit;
    if (unit < 0xDC00 && text_.substr(at_).starts_with("\\u")) {
      at_ += 2;
      const uint32_t low = parse_hex();
      if (low >= 0xDC00 && low <= 0xDFFF) return 0x10000 + ((unit - 0xD800) << 10) + low - 0xDC00;
    }
    refuse_at(begin, "expected a pair of surrogates, got half of one");
  }

  uint32_t parse_hex() {
    uint32_t value = 0;
    for (int i = 0; i < 4; ++i, ++at_) {
      const char c = peek();
      const char lower = char(c | 0x20);
      const bool is_letter = lower >= 'a' && lower <= 'f';
      if (!is_digit(c) && !is_letter) expected("four hexadecimal digits");
      value = value * 16 + uint32_t(is_digit(c) ? c - '0' : lower - 'a' + 10);
    }
    return value;
  }

  void skip_digits() {
    if (!is_digit(peek())) expected("a digit");
    while (is_digit(peek())) ++at_;
  }

  Json parse_number() {
    const size_t begin = at_;
    if (peek() == '-') ++at_;
    if (peek() == '0' && at_ + 1 < text_.size() && is_digit(text_[at_ + 1])) {
      refuse_at(begin, "expected a number without leading zeros");
    }
    skip_digits();
    bool is_whole = true;
    if (peek() == '.') {
      is_whole = false;
      ++at_;
      skip_digits();
    }
    if (peek() == 'e' || peek() == 'E') {
      is_whole = false;
      ++at_;
      if (peek() == '+' || peek() == '-') ++at_;
      skip_digits();
    }
    return number_of(text_.substr(begin, at_ - begin), is_whole, begin);
  }

  Json number_of(std::string_view digits, bool is_whole, size_t begin) const {
    const char* const end = digits.data() + digits.size();
    int64_t whole = 0;
    if (is_whole && std::from_chars(digits.data(), end, whole).ec == std::errc()) return whole;
    double real = 0;
    if (std::from_chars(digits.data(), end, real).ec != std::errc() || !std::isfinite(real)) {
      refuse_at(begin, "expected a number that a double can hold");
    }
    return real;
  }

  std::string_view text_, name_, format_;
  size_t at_ = 0;
};

}  // namespace

Json Json::parse(std::string_view text, std::string_view name, std::string_view format) {
  return Parser(text, name, format).parse();
}

}  // namespace tessera
