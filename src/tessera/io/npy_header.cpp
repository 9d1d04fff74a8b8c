#include "tessera/io/npy_header.h"

#include <charconv>
#include <optional>
#include <system_error>

namespace tessera {

namespace {

bool is_space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }
bool is_printable(char c) { return c >= ' ' && c <= '~'; }

class HeaderParser {
 public:
  HeaderParser(std::string_view text, std::string_view name) : rest_(text), name_(name) {}

  NpyHeader parse() {
    if (!take('{')) refuse("expected the header to be a dict");
    while (!take('}')) {
      parse_item();
      if (take(',')) continue;
      if (!take('}')) refuse("expected ',' or '}' after a value in the header");
      break;
    }
    skip_space();
    if (!rest_.empty()) refuse("expected only spaces after the header's dict");
    require(descr_.has_value(), "descr");
    require(fortran_order_.has_value(), "fortran_order");
    require(shape_.has_value(), "shape");
    return {*descr_, *fortran_order_, *shape_};
  }

 private:
  template <class... Args>
  [[noreturn]] void refuse(const Args&... args) const {
    fail("npy: ", name_, ": ", args...);
  }

  void require(bool present, std::string_view key) const {
    if (!present) refuse("the header has no '", key, "'");
  }

  void skip_space() {
    while (!rest_.empty() && is_space(rest_.front())) rest_.remove_prefix(1);
  }

  bool take(char c) {
    skip_space();
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }

  bool take_word(std::string_view word) {
    skip_space();
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }

  void parse_item() {
    const std::string key = parse_string("the header's keys");
    if (!take(':')) refuse("expected ':' after '", key, "' in the header");
    if (key == "descr") {
      set(descr_, key, parse_string("'descr'"));
    } else if (key == "fortran_order") {
      set(fortran_order_, key, parse_bool());
    } else if (key == "shape") {
      set(shape_, key, parse_shape());
    } else {
      refuse("the header has an unknown key '", key, "'");
    }
  }

  template <class T>
  void set(std::optional<T>& field, std::string_view key, const T& value) {
    if (field.has_value()) refuse("the header has '", key, "' twice");
    field = value;
  }

  // Only printable characters without escapes: nothing else occurs in a header that we can read,
  // and the text is quoted in errors.
  std::string parse_string(std::string_view what) {
    const char quote = take('\'') ? '\'' : take('"') ? '"' : '\0';
    std::string value;
    while (quote != '\0' && !rest_.empty() && is_printable(rest_.front()) &&
           rest_.front() != '\\') {
      const char c = rest_.front();
      rest_.remove_prefix(1);
      if (c == quote) return value;
      value += c;
    }
    refuse("expected ", what, " to be a plain string");
  }

  bool parse_bool() {
    if (take_word("True")) return true;
    if (take_word("False")) return false;
    refuse("expected 'fortran_order' to be True or False");
  }

  Shape parse_shape() {
    if (!take('(')) refuse("expected 'shape' to be a tuple");
    Shape shape;
    while (!take(')')) {
      if (shape.rank() == kMaxRank) refuse("expected at most ", kMaxRank, " dimensions, got more");
      shape.push_back(parse_extent());
      if (take(',')) continue;
      // Python reads "(3)" as a number; only a comma makes a tuple of one.
      if (shape.rank() < 2 || !take(')')) refuse("expected 'shape' to be a tuple of numbers");
      break;
    }
    return shape;
  }

  int64_t parse_extent() {
    skip_space();
    int64_t extent = 0;
    const char* end = rest_.data() + rest_.size();
    const auto [stop, code] = std::from_chars(rest_.data(), end, extent);
    if (code == std::errc::invalid_argument) refuse("expected 'shape' to be a tuple of numbers");
    if (code != std::errc()) refuse("expected extents of at most 2^63 - 1, got a larger one");
    if (extent < 0) refuse("expected extents of at least 0, got ", extent);
    // Python 3 refuses these, and Python 2 reads them as octal.
    if (rest_.front() == '0' && stop - rest_.data() > 1) {
      refuse("expected extents without leading zeros");
    }
    rest_.remove_prefix(size_t(stop - rest_.data()));
    return extent;
  }

  std::string_view rest_;
  std::string_view name_;
  std::optional<std::string> descr_;
  std::optional<bool> fortran_order_;
  std::optional<Shape> shape_;
};

}  // namespace

NpyHeader parse_npy_header(std::string_view text, std::string_view name) {
  return HeaderParser(text, name).parse();
}

std::string format_npy_header(const NpyHeader& header) {
  return cat("{'descr': '", header.descr,
             "', 'fortran_order': ", header.fortran_order ? "True" : "False",
             ", 'shape': ", header.shape, ", }");
}

}  // namespace tessera
