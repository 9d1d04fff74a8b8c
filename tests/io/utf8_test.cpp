#include "tessera/io/utf8.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

// The code point of a well-formed sequence, by definition.
char32_t decode(std::string_view text) {
  if (text.size() == 1) return char32_t(text[0]);
  char32_t value = uint8_t(text[0]) & (0x7Fu >> text.size());
  for (const char c : text.substr(1)) value = value << 6 | (uint8_t(c) & 0x3Fu);
  return value;
}

TEST(Utf8, EveryCodePointRoundTrips) {
  for (char32_t c = 0; c <= 0x10FFFF; ++c) {
    if (c >= 0xD800 && c <= 0xDFFF) continue;
    std::string text;
    append_utf8(text, c);
    ASSERT_EQ(utf8_length(text), text.size()) << uint32_t(c);
    ASSERT_EQ(utf8_length(text + "x"), text.size()) << uint32_t(c);
    ASSERT_EQ(decode(text), c);
    for (size_t length = 0; length < text.size(); ++length) {
      ASSERT_EQ(utf8_length(text.substr(0, length)), 0u) << uint32_t(c);
    }
  }
}

// Of all sequences of up to three bytes, as many are characters as there are code points.
TEST(Utf8, NothingElseIsACharacter) {
  size_t counts[4] = {};
  for (uint32_t bits = 0; bits < 1u << 24; ++bits) {
    const char bytes[3] = {char(bits >> 16), char(bits >> 8), char(bits)};
    const size_t length = utf8_length(std::string_view(bytes, 3));
    ASSERT_LE(length, 3u);
    ++counts[length];
  }
  EXPECT_EQ(counts[1], size_t(0x80) << 16);
  EXPECT_EQ(counts[2], size_t(0x800 - 0x80) << 8);
  EXPECT_EQ(counts[3], size_t(0x10000 - 0x800 - 0x800));
  for (const char* text : {"\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80",
                           "\xF1\x80\x80\x7F", "\xF1\x80\xC0\x80", "\xFF\x80\x80\x80"}) {
    EXPECT_EQ(utf8_length(text), 0u) << text;
  }
}

TEST(Utf8, TheFirstInvalidByteIsFound) {
  EXPECT_EQ(find_invalid_utf8(""), std::string_view::npos);
  EXPECT_EQ(find_invalid_utf8("caf\u00e9 \U0001F600"), std::string_view::npos);
  EXPECT_EQ(find_invalid_utf8("caf\xE9"), 3u);
  EXPECT_EQ(find_invalid_utf8("\u00e9\xC3"), 2u);
}

TEST(Utf8DeathTest, SurrogatesAndLargerValuesAreABug) {
  std::string text;
  EXPECT_DEATH(append_utf8(text, 0xD800), "assertion failed: code_point");
  EXPECT_DEATH(append_utf8(text, 0x110000), "assertion failed: code_point");
}

}  // namespace
}  // namespace tessera
