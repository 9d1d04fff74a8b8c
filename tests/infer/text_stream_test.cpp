#include "tessera/infer/text_stream.h"

#include <gtest/gtest.h>

#include "support/expect_error.h"

namespace tessera {
namespace {

using Parts = std::vector<std::string>;

// What is shown after each byte, then at the end.
Parts shown(const std::string& bytes, const Parts& stops = {}) {
  TextStream stream(stops);
  Parts parts;
  for (const char byte : bytes) parts.push_back(stream.push({&byte, 1}));
  parts.push_back(stream.finish());
  return parts;
}

std::string joined(const Parts& parts) {
  std::string text;
  for (const std::string& part : parts) text += part;
  return text;
}

TEST(TextStream, ShowsWholeCharacters) {
  EXPECT_EQ(shown("a\xC3\xA4"), (Parts{"a", "", "ä", ""}));
  EXPECT_EQ(shown("€"), (Parts{"", "", "€", ""}));
  EXPECT_EQ(shown("\xF0\x9F\x98\x80!"), (Parts{"", "", "", "\xF0\x9F\x98\x80", "!", ""}));
  // First and last characters of each length, and of the lead bytes with limits of their own.
  for (const char* text : {"\xC2\x80", "\xDF\xBF", "\xE0\xA0\x80", "\xED\x9F\xBF", "\xEF\xBF\xBF",
                           "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF"}) {
    EXPECT_EQ(joined(shown(text)), text);
    EXPECT_EQ(shown(text).front(), "");
  }
}

TEST(TextStream, ReplacesWhatIsNoUtf8) {
  EXPECT_EQ(shown("\xFFz"), (Parts{"\xEF\xBF\xBD", "z", ""}));
  EXPECT_EQ(shown("\xC3z"), (Parts{"", "\xEF\xBF\xBDz", ""}));
  EXPECT_EQ(shown("\xE2\x82"), (Parts{"", "", "\xEF\xBF\xBD\xEF\xBF\xBD"}));
}

TEST(TextStream, EndsBeforeTheFirstStop) {
  EXPECT_EQ(joined(shown("one. two\n\nthree", {"\n\n", "three"})), "one. two");
  EXPECT_EQ(shown("abcd", {"bc"}), (Parts{"a", "", "", "", ""}));
  EXPECT_EQ(shown("abd", {"bc"}), (Parts{"a", "", "bd", ""}));
  EXPECT_EQ(shown("ab", {"bc"}), (Parts{"a", "", "b"}));
  // A stop inside of what is kept for a longer one.
  EXPECT_EQ(joined(shown("xaab!", {"aaab", "ab"})), "xa");
  TextStream stream({"end"});
  EXPECT_EQ(stream.push("the end, and more"), "the ");
  EXPECT_TRUE(stream.stopped());
  EXPECT_EQ(stream.push("more"), "");
  EXPECT_EQ(stream.finish(), "");
}

TEST(TextStream, RefusesAnEmptyStop) {
  EXPECT_EQ(error_text([] {
              TextStream({"x", ""});
            }),
            "generate: expected stop strings that are not empty, got \"\"");
}

}  // namespace
}  // namespace tessera
