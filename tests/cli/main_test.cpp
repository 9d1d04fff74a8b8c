#include <gtest/gtest.h>

#include <csignal>

#include "cli/run_command.h"
#include "tessera/io/json.h"
#include "tessera/tessera.h"

namespace tessera {
namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Command, HelpAndVersionGoToStandardOutput) {
  const CommandResult help = run_command({"--help"});
  EXPECT_EQ(help.status, 0);
  EXPECT_TRUE(contains(help.out, "usage: tessera COMMAND"));
  EXPECT_EQ(help.err, "");
  const CommandResult text = run_command({"--version"});
  EXPECT_EQ(text.status, 0);
  EXPECT_TRUE(text.out.starts_with(std::string("tessera ") + version() + "\n")) << text.out;
  EXPECT_EQ(text.err, "");
}

TEST(Command, VersionTellsHowItWasBuilt) {
  const CommandResult text = run_command({"--version"});
  const CommandResult json = run_command({"--version", "--json"});
  EXPECT_EQ(json.status, 0);
  EXPECT_EQ(json.err, "");
  const Json document = Json::parse(json.out, "--version --json");
  EXPECT_EQ(document.get<std::string>("version"), version());
  const std::string compiler = document.get<std::string>("compiler");
#if defined(__clang__)
  EXPECT_TRUE(compiler.starts_with("clang ")) << compiler;
#else
  EXPECT_TRUE(compiler.starts_with("gcc ")) << compiler;
#endif
  EXPECT_TRUE(contains(text.out, "\ncompiler: " + compiler + "\n"));
  const std::string build_type = document.get<std::string>("build_type");
  EXPECT_TRUE(contains(text.out, "\nbuild type: " + build_type + "\n"));
#ifdef NDEBUG
  EXPECT_TRUE(contains(build_type, "Rel")) << build_type;
#endif
  EXPECT_EQ(document.at("backends").at(size_t(0)).as_string(), "cpu");
  EXPECT_TRUE(contains(text.out, "\nbackends: cpu"));
}

void expect_usage_error(const Words& arguments, const std::string& message) {
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
  expect_usage_error({"--json"}, "--json expects a command or --version before it");
}

TEST(Command, MistypedWordsAreRecognized) {
  expect_usage_error({"explian"}, "unknown command 'explian'; did you mean 'explain'?");
  expect_usage_error({"self-test"}, "unknown command 'self-test'; did you mean 'selftest'?");
  expect_usage_error({"--verison"}, "unknown option '--verison'; did you mean '--version'?");
}

TEST(Command, AFullDeviceIsAnError) {
  for (const Words& words : {Words{"explain", "softmax"}, Words{"--help"}}) {
    const CommandResult result = run_into("/dev/full", words);
    EXPECT_EQ(result.status, 1);
    EXPECT_EQ(result.err, "tessera: cannot write to standard output\n");
  }
}

TEST(Command, AClosedPipeEndsItQuietly) {
  for (const bool ignored : {false, true}) {
    const CommandResult result = run_into_closed_pipe({"explain", "softmax"}, ignored);
    EXPECT_EQ(result.signal, SIGPIPE);
    EXPECT_EQ(result.err, "");
  }
}

}  // namespace
}  // namespace tessera
