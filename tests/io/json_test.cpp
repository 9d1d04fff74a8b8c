#include "tessera/io/json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/expect_error.h"

namespace tessera {
namespace {

Json parse(std::string_view text) { return Json::parse(text, "x"); }

std::string refusal(std::string_view text) {
  return error_text([&] { parse(text); });
}

TEST(Json, ReadsEveryType) {
  EXPECT_TRUE(parse("null").is_null());
  EXPECT_TRUE(parse(" true ").as_bool());
  EXPECT_FALSE(parse("\tfalse\r\n").as_bool());
  EXPECT_EQ(parse("12").as_int(), 12);
  EXPECT_EQ(parse("-1.5e1").as_double(), -15.0);
  EXPECT_EQ(parse("\"text\"").as_string(), "text");
  EXPECT_EQ(parse("[]").as_array().size(), 0u);
  EXPECT_EQ(parse("[1, [2], {}]").as_array().size(), 3u);
  const Json object = parse("{\"b\": 1, \"a\": {\"c\": [null]}}");
  EXPECT_EQ(object.as_object()[0].first, "b");
  EXPECT_EQ(object.as_object()[1].first, "a");
  EXPECT_TRUE(object.at("a").at("c").at(0).is_null());
}

TEST(Json, WholeNumbersAreExact) {
  EXPECT_EQ(parse("9223372036854775807").as_int(), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(parse("-9223372036854775808").as_int(), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(parse("9007199254740993").as_int(), 9007199254740993);
  EXPECT_EQ(parse("-0").as_int(), 0);
  for (const char* text : {"9223372036854775808", "1.0", "1e2", "-0.0"}) {
    EXPECT_FALSE(parse(text).is_int()) << text;
    EXPECT_TRUE(parse(text).is_number()) << text;
  }
  EXPECT_EQ(parse("9223372036854775808").as_double(), 0x1p63);
  EXPECT_EQ(parse("7").as_double(), 7.0);
}

TEST(Json, ReadsRealsToTheNearestDouble) {
  EXPECT_EQ(parse("0.1").as_double(), 0.1);
  EXPECT_EQ(parse("1.7976931348623157E+308").as_double(), std::numeric_limits<double>::max());
  EXPECT_EQ(parse("5e-324").as_double(), std::numeric_limits<double>::denorm_min());
  EXPECT_TRUE(std::signbit(parse("-0.0").as_double()));
}

TEST(Json, ReadsEscapes) {
  EXPECT_EQ(parse(R"("\"\\\/\b\f\n\r\t")").as_string(), "\"\\/\b\f\n\r\t");
  EXPECT_EQ(parse(R"("\u0041\u00e9\u20AC\ud83d\ude00")").as_string(), "A\u00e9\u20ac\U0001F600");
  EXPECT_EQ(parse(R"("\u0000")").as_string(), std::string(1, '\0'));
  EXPECT_EQ(parse("\"\u00e9\u20ac\U0001F600\x7f\"").as_string(), "\u00e9\u20ac\U0001F600\x7f");
}

struct Refused {
  std::string text, sentence;
};

TEST(Json, RefusesWithTheByteAndWhatIsThere) {
  const std::vector<Refused> rows = {
      {"", "byte 0: expected a value, got the end of the text"},
      {"  ", "byte 2: expected a value, got the end of the text"},
      {"x", "byte 0: expected a value, got 'x'"},
      {"nul", "byte 0: expected a value, got 'n'"},
      {"True", "byte 0: expected a value, got 'T'"},
      {"NaN", "byte 0: expected a value, got 'N'"},
      {"-Infinity", "byte 1: expected a digit, got 'I'"},
      {"+1", "byte 0: expected a value, got '+'"},
      {".5", "byte 0: expected a value, got '.'"},
      {"\xEF\xBB\xBF{}", "byte 0: expected a value, got byte 0xef"},
      {std::string(1, '\0'), "byte 0: expected a value, got byte 0x00"},
      {"1 2", "byte 2: expected the end after the value, got '2'"},
      {"{} ,", "byte 3: expected the end after the value, got ','"},
      {"nulll", "byte 4: expected the end after the value, got 'l'"},
      {std::string("1\0", 2), "byte 1: expected the end after the value, got byte 0x00"},
      {"[1", "byte 2: expected ',' or ']', got the end of the text"},
      {"[1 2]", "byte 3: expected ',' or ']', got '2'"},
      {"[1,]", "byte 3: expected a value, got ']'"},
      {"[,1]", "byte 1: expected a value, got ','"},
      {"[1}", "byte 2: expected ',' or ']', got '}'"},
      {"{", "byte 1: expected a key in quotes, got the end of the text"},
      {"{1:2}", "byte 1: expected a key in quotes, got '1'"},
      {"{'a':2}", "byte 1: expected a key in quotes, got '''"},
      {"{\"a\":1,}", "byte 7: expected a key in quotes, got '}'"},
      {"{\"a\" 1}", "byte 5: expected ':' after the key, got '1'"},
      {"{\"a\":}", "byte 5: expected a value, got '}'"},
      {"{\"a\":1 \"b\":2}", "byte 7: expected ',' or '}', got '\"'"},
      {"{\"a\":1, \"b\":2, \"a\":3}",
       "byte 15: expected every key of an object once, got \"a\" again"},
      {R"({"a":1,"\u0061":2})", "byte 7: expected every key of an object once, got \"a\" again"},
      {"-", "byte 1: expected a digit, got the end of the text"},
      {"1.", "byte 2: expected a digit, got the end of the text"},
      {"1.e5", "byte 2: expected a digit, got 'e'"},
      {"1e", "byte 2: expected a digit, got the end of the text"},
      {"1e+x", "byte 3: expected a digit, got 'x'"},
      {"0x10", "byte 1: expected the end after the value, got 'x'"},
      {"01", "byte 0: expected a number without leading zeros"},
      {"[-00]", "byte 1: expected a number without leading zeros"},
      {"00.5", "byte 0: expected a number without leading zeros"},
      {"1e999", "byte 0: expected a number that a double can hold"},
      {"[-1e999]", "byte 1: expected a number that a double can hold"},
      {"\"", "byte 1: expected '\"' or a character of the string, got the end of the text"},
      {"\"a\nb\"", "byte 2: expected '\"' or a character of the string, got byte 0x0a"},
      {std::string("\"\0\"", 3),
       "byte 1: expected '\"' or a character of the string, got byte 0x00"},
      {"\"\xff\"", "byte 1: expected UTF-8, got byte 0xff"},
      {"\"\xC0\x80\"", "byte 1: expected UTF-8, got byte 0xc0"},
      {"\"\xED\xA0\x80\"", "byte 1: expected UTF-8, got byte 0xed"},
      {"\"\xE2\x82\"", "byte 1: expected UTF-8, got byte 0xe2"},
      {"\"\\x\"", "byte 2: expected an escape, one of \"\\/bfnrtu, got 'x'"},
      {"\"\\", "byte 2: expected an escape, one of \"\\/bfnrtu, got the end of the text"},
      {"\"\\u12g4\"", "byte 5: expected four hexadecimal digits, got 'g'"},
      {"\"\\u12", "byte 5: expected four hexadecimal digits, got the end of the text"},
      {R"("\ud800")", "byte 1: expected a pair of surrogates, got half of one"},
      {R"("\udc00\ud800")", "byte 1: expected a pair of surrogates, got half of one"},
      {R"("\ud800\u0041")", "byte 1: expected a pair of surrogates, got half of one"},
      {R"("\ud800x")", "byte 1: expected a pair of surrogates, got half of one"},
  };
  for (const auto& [text, sentence] : rows) EXPECT_EQ(refusal(text), "json: x: " + sentence);
}

TEST(Json, TheCallerNamesTheFormat) {
  EXPECT_EQ(error_text([] { Json::parse("[", "'a.cfg'", "config"); }),
            "config: 'a.cfg': byte 1: expected a value, got the end of the text");
}

TEST(Json, DepthIsLimited) {
  const auto nested = [](size_t n) { return std::string(n, '[') + std::string(n, ']'); };
  EXPECT_NO_THROW(parse(nested(64)));
  EXPECT_EQ(refusal(nested(65)),
            "json: x: byte 64: expected at most 64 arrays and objects in one another");
  EXPECT_EQ(refusal(std::string(1 << 20, '[')),
            "json: x: byte 64: expected at most 64 arrays and objects in one another");
  std::string objects;
  for (int i = 0; i < 65; ++i) objects += "{\"a\":";
  EXPECT_EQ(refusal(objects),
            "json: x: byte 320: expected at most 64 arrays and objects in one another");
}

TEST(Json, ManyKeysTakeNoSquareOfTheTime) {
  std::string text = "{";
  for (int i = 0; i < 200000; ++i) text += cat("\"k", i, "\":", i, ",");
  text += "\"k0\":0}";
  EXPECT_EQ(refusal(text).substr(0, 14), "json: x: byte ");
  text.replace(text.size() - 7, 7, "\"last\":0}");
  EXPECT_EQ(parse(text).as_object().size(), 200001u);
}

TEST(Json, WrongTypesSayWhatThereIs) {
  const Json json = parse(R"({"n": "12", "list": [1, 2.5], "none": null, "big": 1e20})");
  EXPECT_EQ(error_text([&] { json.at("n").as_int(); }),
            "json: expected a whole number, got the string \"12\"");
  EXPECT_EQ(error_text([&] { json.at("n").as_int("n"); }),
            "json: expected \"n\" to be a whole number, got the string \"12\"");
  EXPECT_EQ(error_text([&] { json.at("list").at(1).as_int(); }),
            "json: expected a whole number, got the number 2.5");
  EXPECT_EQ(error_text([&] { json.get<int64_t>("big"); }),
            "json: expected \"big\" to be a whole number, got the number 1e+20");
  EXPECT_EQ(error_text([&] { json.get<bool>("list"); }),
            "json: expected \"list\" to be true or false, got an array");
  EXPECT_EQ(error_text([&] { json.get<double>("none"); }),
            "json: expected \"none\" to be a number, got null");
  EXPECT_EQ(error_text([&] { json.get<std::string>("list"); }),
            "json: expected \"list\" to be a string, got an array");
  EXPECT_EQ(error_text([&] { json.as_array(); }), "json: expected an array, got an object");
  EXPECT_EQ(error_text([&] { Json(true).as_object(); }), "json: expected an object, got true");
  EXPECT_EQ(error_text([&] { Json(1).at("key"); }), "json: expected an object, got the number 1");
  EXPECT_EQ(error_text([&] { Json(std::nan("")).as_int(); }),
            "json: expected a whole number, got the number nan");
}

TEST(Json, AbsentKeysAndIndices) {
  const Json json = parse(R"({"a": 1, "none": null, "list": [1]})");
  EXPECT_EQ(json.find("b"), nullptr);
  EXPECT_EQ(json.at("list").find("b"), nullptr);
  EXPECT_TRUE(json["b"].is_null());
  EXPECT_TRUE(json["a"]["b"]["c"].is_null());
  EXPECT_EQ(json.get<int64_t>("a", 5), 1);
  EXPECT_EQ(json.get<int64_t>("b", 5), 5);
  EXPECT_EQ(json.get<std::string>("none", "x"), "x");
  EXPECT_EQ(error_text([&] { json.at("b"); }), "json: expected the key \"b\", got none");
  EXPECT_EQ(error_text([&] { json.get<double>("b"); }), "json: expected the key \"b\", got none");
  EXPECT_EQ(error_text([&] { json["list"].at(1); }),
            "json: expected an index below 1 of the array, got 1");
}

TEST(Json, Builds) {
  Json json;
  json.set("a", 1).set("b", Json().push(1.5).push("x").push(nullptr)).set("a", true);
  EXPECT_EQ(json.dump(), R"({"a":true,"b":[1.5,"x",null]})");
  EXPECT_EQ(Json::object().dump(), "{}");
  EXPECT_EQ(Json::array().dump(), "[]");
  EXPECT_EQ(Json(uint32_t(4000000000)).as_int(), 4000000000);
  EXPECT_EQ(error_text([&] { json.push(1); }), "json: expected an array, got an object");
  EXPECT_EQ(error_text([&] { Json(1).set("a", 1); }), "json: expected an object, got the number 1");
}

TEST(Json, WritesOverSeveralLines) {
  const Json json = parse(R"({"a": [1, {"b": {}}], "c": [], "d": "e"})");
  EXPECT_EQ(json.dump(2), R"({
  "a": [
    1,
    {
      "b": {}
    }
  ],
  "c": [],
  "d": "e"
})");
  EXPECT_EQ(parse(json.dump(3)), json);
}

TEST(Json, WritesNumbersThatReadBackEqual) {
  for (const double value : {0.0, -0.0, 1.0, 0.1, -2.5e-7, 1e300, 5e-324, 123456789.0, 1e21}) {
    const std::string text = Json(value).dump();
    const Json back = parse(text);
    EXPECT_FALSE(back.is_int()) << text;
    EXPECT_EQ(back.as_double(), value) << text;
    EXPECT_EQ(std::signbit(back.as_double()), std::signbit(value)) << text;
  }
  EXPECT_EQ(Json(1.0).dump(), "1.0");
  EXPECT_EQ(Json(std::numeric_limits<int64_t>::min()).dump(), "-9223372036854775808");
}

TEST(Json, WritesEscapes) {
  EXPECT_EQ(Json("\"\\/\b\f\n\r\t\x01\x1f\x7f\u00e9").dump(),
            "\"\\\"\\\\/\\b\\f\\n\\r\\t\\u0001\\u001f\x7f\u00e9\"");
  std::string all;
  for (char c = 0; c < 127; ++c) all += c;
  EXPECT_EQ(parse(Json(all).dump()).as_string(), all);
}

TEST(Json, RefusesToWriteWhatItCannotRead) {
  EXPECT_EQ(error_text([] { Json(std::nan("")).dump(); }),
            "json: expected a finite number to write, got nan");
  EXPECT_EQ(error_text([] { Json(HUGE_VAL).dump(); }),
            "json: expected a finite number to write, got inf");
  EXPECT_EQ(error_text([] { Json("caf\xE9").dump(); }),
            "json: expected UTF-8 to write, got \"caf\\u00e9\"");
}

TEST(Json, EqualMeansSameTypesValuesAndOrder) {
  EXPECT_EQ(parse("[1, {\"a\": 2}]"), parse("[1,{\"a\":2}]"));
  EXPECT_NE(parse("1"), parse("1.0"));
  EXPECT_NE(parse("{\"a\":1,\"b\":2}"), parse("{\"b\":2,\"a\":1}"));
}

TEST(Json, QuotesForErrors) {
  EXPECT_EQ(quote_for_error("a\"\n\xff"), "\"a\\\"\\n\\u00ff\"");
  EXPECT_EQ(quote_for_error(std::string(60, 'x')), '"' + std::string(60, 'x') + '"');
  EXPECT_EQ(quote_for_error(std::string(1000, 'x')), '"' + std::string(60, 'x') + "...\"");
}

TEST(Json, EveryTruncationIsRefused) {
  const std::string text = R"({"a": [1.5e3, true, "x\u00e9\n"], "b": {"c": null}})";
  for (size_t length = 0; length < text.size(); ++length) {
    EXPECT_THROW(parse(text.substr(0, length)), Error) << length;
  }
  EXPECT_NO_THROW(parse(text));
}

}  // namespace
}  // namespace tessera
