// JSON (RFC 8259) as a value: read strictly, written exactly.
//
// clang-format off
//   const Json config = Json::parse(text, "config.json");
//   const int64_t layers = config.get<int64_t>("n_layer");  // throws when absent or no number
//   const double dropout = config.get<double>("dropout", 0.0);  // 0.0 when absent
//   for (const Json& merge : config.at("merges").as_array()) use(merge.as_string());
// clang-format on
//
// Reading refuses what other readers disagree about: repeated keys, invalid UTF-8, lone surrogates,
// numbers beyond double, anything after the value. Writing and reading again gives an equal value.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace tessera {

class Json {
 public:
  using Member = std::pair<std::string, Json>;
  using Array = std::vector<Json>;
  using Object = std::vector<Member>;  // in the order of the text, without repeated keys

  static constexpr int kMaxDepth = 64;  // of arrays and objects in one another, when reading

  Json() = default;  // null
  Json(std::nullptr_t) {}
  Json(bool value) : value_(value) {}
  template <std::integral T>
  requires(!std::same_as<T, bool> && (std::signed_integral<T> || sizeof(T) < 8)) Json(T value)
      : value_(int64_t(value)) {}
  Json(double value) : value_(value) {}
  Json(std::string value) : value_(std::move(value)) {}
  Json(std::string_view value) : value_(std::string(value)) {}
  Json(const char* value) : value_(std::string(value)) {}
  Json(Array value) : value_(std::move(value)) {}
  Json(Object value) : value_(std::move(value)) {}

  static Json array() { return Array(); }
  static Json object() { return Object(); }

  // Throws "<format>: <name>: byte <offset>: expected ..., got ..." for anything but one value.
  static Json parse(std::string_view text, std::string_view name, std::string_view format = "json");

  bool is_null() const { return holds<std::monostate>(); }
  bool is_bool() const { return holds<bool>(); }
  bool is_number() const { return is_int() || holds<double>(); }
  bool is_int() const { return holds<int64_t>(); }  // written without '.' and 'e', fits int64_t
  bool is_string() const { return holds<std::string>(); }
  bool is_array() const { return holds<Array>(); }
  bool is_object() const { return holds<Object>(); }

  // Each throws when the value is of another type; `what` names the value in the error.
  bool as_bool(std::string_view what = "") const;
  int64_t as_int(std::string_view what = "") const;
  double as_double(std::string_view what = "") const;  // any number
  const std::string& as_string(std::string_view what = "") const;
  const Array& as_array(std::string_view what = "") const;
  const Object& as_object(std::string_view what = "") const;

  // The member of an object, found by going through all. Where many of a large object are wanted,
  // go through as_object() once instead.
  const Json* find(std::string_view key) const;        // null when absent, or no object
  const Json& operator[](std::string_view key) const;  // the null value when absent
  const Json& at(std::string_view key) const;          // throws when absent, or no object
  const Json& at(size_t index) const;                  // of an array

  // at(key), or the fallback when absent or null, as bool, int64_t, double or std::string.
  template <class T>
  T get(std::string_view key) const {
    return at(key).as<T>(key);
  }
  template <class T>
  T get(std::string_view key, T fallback) const {
    const Json& member = (*this)[key];
    return member.is_null() ? fallback : member.as<T>(key);
  }

  // Builds: a null becomes an object or an array first. set() replaces a member of that key.
  Json& set(std::string_view key, Json value);
  Json& push(Json value);

  // With `indent` spaces per level over several lines, or without any space when it is 0. Throws
  // for a string that is no UTF-8 and for a number that is not finite.
  std::string dump(int indent = 0) const;

  // The value as an error shows it: "true", "the number 3", "the string \"x\"", "an array".
  std::string describe() const;

  bool operator==(const Json& other) const { return value_ == other.value_; }

 private:
  template <class T>
  bool holds() const {
    return std::holds_alternative<T>(value_);
  }

  template <class T>
  T as(std::string_view what) const {
    if constexpr (std::same_as<T, bool>) {
      return as_bool(what);
    } else if constexpr (std::same_as<T, int64_t>) {
      return as_int(what);
    } else if constexpr (std::same_as<T, double>) {
      return as_double(what);
    } else {
      static_assert(std::same_as<T, std::string>, "get<T>: bool, int64_t, double or std::string");
      return as_string(what);
    }
  }

  std::variant<std::monostate, bool, int64_t, double, std::string, Array, Object> value_;
};

// "text" as JSON writes a string, quotes included, cut after some 60 bytes; any bytes are fine. For
// errors that quote what a file says.
std::string quote_for_error(std::string_view text);

}  // namespace tessera
