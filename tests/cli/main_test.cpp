#include <gtest/gtest.h>

#include "cli/run_command.h"
#include "tessera/tessera.h"

namespace tessera {
namespace {

TEST(Command, HelpAndVersionGoToStandardOutput) {
  const CommandResult help = run_command({"--help"});
  EXPECT_EQ(help.status, 0);
  EXPECT_NE(help.out.find("usage: tessera COMMAND"), std::string::npos);
  EXPECT_NE(help.out.find("  explain "), std::string::npos);
  EXPECT_EQ(help.err, "");
  const CommandResult version_result = run_command({"--version"});
  EXPECT_EQ(version_result.status, 0);
  EXPECT_EQ(version_result.out, std::string("tessera ") + version() + "\n");
}

void expect_usage_error(const std::vector<std::string>& arguments, const std::string& message) {
  const CommandResult result = run_command(arguments);
  EXPECT_EQ(result.status, 2);
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(result.err, "tessera: " + message + "\ntry 'tessera --help'\n");
}

TEST(Command, WrongUseExitsWithTwo) {
  expect_usage_error({}, "expected a command, got none");
  expect_usage_error({""}, "unknown command ''");
  expect_usage_error({"frobnicate"}, "unknown command 'frobnicate'");
  expect_usage_error({"--frobnicate"}, "unknown option '--frobnicate'");
  expect_usage_error({"--version", "explain"}, "expected a command before options");
}

TEST(Command, AFullDeviceIsAnError) {
  const CommandResult result = run_command({"explain", "softmax"}, "/dev/full");
  EXPECT_EQ(result.status, 1);
  EXPECT_EQ(result.err, "tessera: cannot write to standard output\n");
}

}  // namespace
}  // namespace tessera
