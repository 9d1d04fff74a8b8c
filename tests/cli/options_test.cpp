#include "tessera/cli/options.h"

#include <gtest/gtest.h>

#include "support/expect_error.h"

namespace tessera::cli {
namespace {

constexpr Option kTable[] = {
    {"--switch", "", "turns something on"},
    {"--form", "a|bc", "one of two"},
    {"-o", "FILE", "where to"},
    {"--many", "TEXT", "again and again", true},
};

Arguments parse(const std::vector<std::string>& words) {
  return parse_arguments("cmd", kTable, words);
}

std::string parse_error(const std::vector<std::string>& words) {
  try {
    parse(words);
  } catch (const UsageError& error) {
    return error.what();
  }
  ADD_FAILURE() << "expected a UsageError";
  return "";
}

TEST(Options, AreTakenInAnyOrder) {
  const Arguments a = parse({"one", "--form", "bc", "--switch", "two", "-o", "file"});
  EXPECT_EQ(a.words, (std::vector<std::string>{"one", "two"}));
  EXPECT_TRUE(a.has("--switch"));
  EXPECT_EQ(a.value("--form", "a"), "bc");
  EXPECT_EQ(a.value("-o", ""), "file");
}

TEST(Options, HaveDefaults) {
  const Arguments a = parse({});
  EXPECT_FALSE(a.has("--switch"));
  EXPECT_EQ(a.value("--form", "a"), "a");
}

TEST(Options, ValuesMayBeAttached) {
  EXPECT_EQ(parse({"--form=a"}).value("--form", ""), "a");
  EXPECT_EQ(parse({"-o=x=y"}).value("-o", ""), "x=y");
}

TEST(Options, SomeRepeat) {
  const Arguments a = parse({"--many", "b", "--form", "a", "--many=a", "--many", "b"});
  EXPECT_EQ(a.values("--many"), (std::vector<std::string>{"b", "a", "b"}));
  EXPECT_EQ(a.values("-o"), std::vector<std::string>());
}

TEST(Options, AreReadAsNumbers) {
  const Arguments a = parse({"--many", "0.25", "-o", "x"});
  EXPECT_EQ(real(a, "cmd", "--many", 1, 0, 1), 0.25);
  EXPECT_EQ(real(a, "cmd", "--form", 3, 0, 1), 3);
  EXPECT_EQ(error_text([&] { real(a, "cmd", "--many", 1, 0.5, 1); }),
            "cmd: --many expects a number from 0.5 to 1, got '0.25'");
  EXPECT_EQ(error_text([&] { real(a, "cmd", "-o", 1, 0, 1); }),
            "cmd: -o expects a number from 0 to 1, got 'x'");
}

TEST(Options, EndAtTwoDashes) {
  EXPECT_EQ(parse({"--", "--switch", "-"}).words, (std::vector<std::string>{"--switch", "-"}));
}

TEST(Options, ErrorsNameWhatIsWrong) {
  EXPECT_EQ(parse_error({"--frob"}), "cmd: unknown option '--frob'");
  EXPECT_EQ(parse_error({"--from=a"}), "cmd: unknown option '--from'; did you mean '--form'?");
  EXPECT_EQ(parse_error({"--switch=1"}), "cmd: --switch takes no value");
  EXPECT_EQ(parse_error({"--form"}), "cmd: --form expects a|bc, got nothing");
  EXPECT_EQ(parse_error({"--form", "b"}), "cmd: --form expects a|bc, got 'b'");
  EXPECT_EQ(parse_error({"--form", "a|bc"}), "cmd: --form expects a|bc, got 'a|bc'");
  EXPECT_EQ(parse_error({"-o", ""}), "cmd: -o expects FILE, got ''");
  EXPECT_EQ(parse_error({"--switch", "--switch"}), "cmd: --switch is given twice");
}

TEST(Options, AreDescribedInColumns) {
  EXPECT_EQ(describe(kTable),
            "  --switch                  turns something on\n"
            "  --form a|bc               one of two\n"
            "  -o FILE                   where to\n"
            "  --many TEXT               again and again\n");
}

}  // namespace
}  // namespace tessera::cli
