// `--profile FILE`, behind any command.
#include <gtest/gtest.h>

#include "cli/run_command.h"
#include "io/temp_folder.h"
#include "tessera/io/json.h"

namespace tessera {
namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

struct Case {
  const char* title;
  Words words;
  const char* kernel;  // one that it runs
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.title; }

class AnyCommand : public ::testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Commands, AnyCommand,
                         ::testing::Values(Case{"explain", {"explain", "softmax"}, "copy"},
                                           Case{"selftest", {"selftest", "--quick"}, "matmul"}),
                         [](const auto& test) { return std::string(test.param.title); });

TEST_P(AnyCommand, WritesATraceAndATable) {
  const TempFolder folder;
  const std::string path = (folder / "trace.json").string();
  Words words = GetParam().words;
  const CommandResult plain = run_command(words);
  words.insert(words.end(), {"--profile", path});
  const CommandResult result = run_command(words);
  EXPECT_EQ(result.status, plain.status) << result.err;
  EXPECT_EQ(contains(result.out, "\n"), contains(plain.out, "\n"));
  EXPECT_TRUE(result.err.starts_with("kernel ")) << result.err;
  EXPECT_TRUE(contains(result.err, "\ncompile: fuse ")) << result.err;
  EXPECT_TRUE(contains(result.err, "host: other ")) << result.err;
  EXPECT_TRUE(contains(result.err, "\nwall time ")) << result.err;
  int kernels = 0, compiled = 0;
  const Json trace = Json::parse(read_text(path), path);
  for (const Json& event : trace.at("traceEvents").as_array()) {
    kernels += event["cat"] == Json("kernel") && event["name"] == Json(GetParam().kernel);
    compiled += event["cat"] == Json("compile");
  }
  EXPECT_GT(kernels, 0);
  EXPECT_GT(compiled, 0);
  EXPECT_EQ(folder.files(), 1u);
}

TEST(ProfileOption, LeavesTheResultAlone) {
  const TempFolder folder;
  const Words plain = {"explain", "mlp", "--json"};
  Words profiled = plain;
  profiled.push_back("--profile=" + (folder / "trace.json").string());
  EXPECT_EQ(run_command(profiled).out, run_command(plain).out);
}

TEST(ProfileOption, AFileThatCannotBeWrittenIsAnErrorBeforeTheWork) {
  const TempFolder folder;
  const std::string path = (folder / "none" / "trace.json").string();
  const CommandResult result = run_command({"explain", "softmax", "--profile", path});
  EXPECT_EQ(result.status, 1);
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(result.err, "tessera: write: cannot write '" + path + "': No such file or directory\n");
  const CommandResult missing = run_command({"explain", "--profile"});
  EXPECT_EQ(missing.status, 2);
  EXPECT_EQ(missing.err,
            "tessera: explain: --profile expects FILE, got nothing\n"
            "try 'tessera explain --help'\n");
}

TEST(ProfileOption, AWrongCallLeavesNoFile) {
  const TempFolder folder;
  const std::string path = (folder / "trace.json").string();
  EXPECT_EQ(run_command({"explain", "cnn", "--profile", path}).status, 2);
  EXPECT_EQ(run_command({"explain", "--help", "--profile", path}).status, 0);
  EXPECT_EQ(folder.files(), 0u);
}

}  // namespace
}  // namespace tessera
