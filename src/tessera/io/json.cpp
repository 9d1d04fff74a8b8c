#include "tessera/io/json.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "tessera/base/error.h"
#include "tessera/io/utf8.h"

namespace tessera {

namespace {

constexpr size_t kShown = 60;  // bytes of a text that an error quotes

void append_escape(std::string& out, char c) {
  constexpr std::string_view kLetters = "\"\\\b\f\n\r\t", kEscapes = "\"\\bfnrt";
  constexpr std::string_view kHex = "0123456789abcdef";
  out += '\\';
  if (const size_t i = kLetters.find(c); i != std::string_view::npos) {
    out += kEscapes[i];
  } else {
    out += "u00";
    out += kHex[uint8_t(c) >> 4];
    out += kHex[uint8_t(c) & 15];
  }
}

bool is_escaped(char c) { return uint8_t(c) < 0x20 || c == '"' || c == '\\'; }

template <class T>
void append_number(std::string& out, T value) {
  char digits[32];
  const auto [end, code] = std::to_chars(digits, digits + sizeof(digits), value);
  TESSERA_ASSERT(code == std::errc());
  out.append(digits, end);
}

class Writer {
 public:
  explicit Writer(int indent) : indent_(indent) {}

  void write(const Json& json, int level) {
    if (json.is_null()) {
      out_ += "null";
    } else if (json.is_bool()) {
      out_ += json.as_bool() ? "true" : "false";
    } else if (json.is_int()) {
      append_number(out_, json.as_int());
    } else if (json.is_number()) {
      write_real(json.as_double());
    } else if (json.is_string()) {
      write_string(json.as_string());
    } else if (json.is_array()) {
      write_list('[', ']', json.as_array(), level,
                 [&](const Json& element) { write(element, level + 1); });
    } else {
      write_list('{', '}', json.as_object(), level, [&](const Json::Member& member) {
        write_string(member.first);
        out_ += indent_ > 0 ? ": " : ":";
        write(member.second, level + 1);
      });
    }
  }

  std::string take() { return std::move(out_); }

 private:
  // The shortest digits that read back as the same double, and as a double.
  void write_real(double value) {
    if (!std::isfinite(value)) fail("json: expected a finite number to write, got ", value);
    const size_t begin = out_.size();
    append_number(out_, value);
    if (out_.find_first_of(".e", begin) == std::string::npos) out_ += ".0";
  }

  void write_string(std::string_view text) {
    if (find_invalid_utf8(text) != std::string_view::npos) {
      fail("json: expected UTF-8 to write, got ", quote_for_error(text));
    }
    out_ += '"';
    for (const char c : text) {
      if (is_escaped(c)) {
        append_escape(out_, c);
      } else {
        out_ += c;
      }
    }
    out_ += '"';
  }

  template <class List, class F>
  void write_list(char open, char close, const List& list, int level, const F& write_one) {
    out_ += open;
    bool first = true;
    for (const auto& one : list) {
      if (!first) out_ += ',';
      first = false;
      new_line(level + 1);
      write_one(one);
    }
    if (!first) new_line(level);
    out_ += close;
  }

  void new_line(int level) {
    if (indent_ == 0) return;
    out_ += '\n';
    out_.append(size_t(level) * size_t(indent_), ' ');
  }

  int indent_;
  std::string out_;
};

[[noreturn]] void wrong_type(const Json& json, std::string_view type, std::string_view what) {
  if (what.empty()) fail("json: expected ", type, ", got ", json.describe());
  fail("json: expected ", quote_for_error(what), " to be ", type, ", got ", json.describe());
}

}  // namespace

bool Json::as_bool(std::string_view what) const {
  if (!is_bool()) wrong_type(*this, "true or false", what);
  return std::get<bool>(value_);
}

int64_t Json::as_int(std::string_view what) const {
  if (!is_int()) wrong_type(*this, "a whole number", what);
  return std::get<int64_t>(value_);
}

double Json::as_double(std::string_view what) const {
  if (!is_number()) wrong_type(*this, "a number", what);
  return is_int() ? double(std::get<int64_t>(value_)) : std::get<double>(value_);
}

const std::string& Json::as_string(std::string_view what) const {
  if (!is_string()) wrong_type(*this, "a string", what);
  return std::get<std::string>(value_);
}

const Json::Array& Json::as_array(std::string_view what) const {
  if (!is_array()) wrong_type(*this, "an array", what);
  return std::get<Array>(value_);
}

const Json::Object& Json::as_object(std::string_view what) const {
  if (!is_object()) wrong_type(*this, "an object", what);
  return std::get<Object>(value_);
}

const Json* Json::find(std::string_view key) const {
  if (!is_object()) return nullptr;
  const Object& object = std::get<Object>(value_);
  const auto member = std::ranges::find(object, key, &Member::first);
  return member == object.end() ? nullptr : &member->second;
}

const Json& Json::operator[](std::string_view key) const {
  static const Json null;
  const Json* member = find(key);
  return member == nullptr ? null : *member;
}

const Json& Json::at(std::string_view key) const {
  as_object();
  const Json* member = find(key);
  if (member == nullptr) fail("json: expected the key ", quote_for_error(key), ", got none");
  return *member;
}

const Json& Json::at(size_t index) const {
  const Array& array = as_array();
  if (index >= array.size()) {
    fail("json: expected an index below ", array.size(), " of the array, got ", index);
  }
  return array[index];
}

Json& Json::set(std::string_view key, Json value) {
  if (is_null()) value_ = Object();
  as_object();
  auto& object = std::get<Object>(value_);
  const auto member = std::ranges::find(object, key, &Member::first);
  if (member != object.end()) {
    member->second = std::move(value);
  } else {
    object.emplace_back(std::string(key), std::move(value));
  }
  return *this;
}

Json& Json::push(Json value) {
  if (is_null()) value_ = Array();
  as_array();
  std::get<Array>(value_).push_back(std::move(value));
  return *this;
}

std::string Json::dump(int indent) const {
  Writer writer(indent);
  writer.write(*this, 0);
  return writer.take();
}

std::string Json::describe() const {
  if (is_array()) return "an array";
  if (is_object()) return "an object";
  if (is_string()) return "the string " + quote_for_error(as_string());
  if (!is_number()) return dump();
  return std::isfinite(as_double()) ? "the number " + dump() : cat("the number ", as_double());
}

std::string quote_for_error(std::string_view text) {
  std::string out = "\"";
  for (size_t at = 0; at < text.size();) {
    if (at >= kShown) {
      out += "...";
      break;
    }
    const size_t length = utf8_length(text.substr(at));
    if (length == 0 || is_escaped(text[at])) {
      append_escape(out, text[at++]);
    } else {
      out += text.substr(at, length);
      at += length;
    }
  }
  return out + '"';
}

}  // namespace tessera
