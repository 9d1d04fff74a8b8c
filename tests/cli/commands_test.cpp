// Every command of the table: its help, its examples and its chapter of docs/cli.md.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include <algorithm>
#include <iterator>
#include <sstream>

#include "cli/run_command.h"
#include "cli/text_model.h"
#include "io/temp_folder.h"
#include "tessera/cli/command.h"
#include "tessera/io/json.h"
#include "tessera/io/npy.h"

namespace tessera::cli {

void PrintTo(const Command* command, std::ostream* out) { *out << command->name; }

namespace {

Words split(std::string_view line) {
  std::istringstream in{std::string(line)};
  return {std::istream_iterator<std::string>(in), std::istream_iterator<std::string>()};
}

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

// The blocks between ``` lines.
std::vector<std::string> code_blocks(const std::string& markdown) {
  std::vector<std::string> blocks;
  std::istringstream in(markdown);
  bool inside = false;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("```")) {
      inside = !inside;
      if (inside) blocks.emplace_back();
    } else if (inside) {
      blocks.back() += line + "\n";
    }
  }
  return blocks;
}

const std::vector<std::string>& documented() {
  static const std::vector<std::string> blocks =
      code_blocks(read_text(std::string(TESSERA_TEST_DIR) + "/../../docs/cli.md"));
  return blocks;
}

bool is_documented(const std::string& text) { return std::ranges::count(documented(), text) == 1; }

class CommandTable : public ::testing::TestWithParam<const Command*> {};
INSTANTIATE_TEST_SUITE_P(Commands, CommandTable,
                         ::testing::ValuesIn(commands().begin(), commands().end()),
                         [](const auto& test) { return std::string(test.param->name); });

TEST_P(CommandTable, HasHelp) {
  const Command& command = *GetParam();
  const CommandResult result = run_command({std::string(command.name), "--help"});
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(result.err, "");
  EXPECT_EQ(result.out, usage(command));
  EXPECT_TRUE(result.out.starts_with("usage: tessera " + std::string(command.name) + " "));
  for (const Option& option : command.options) EXPECT_TRUE(contains(result.out, option.name));
  ASSERT_FALSE(command.examples.empty());
  for (const std::string_view example : command.examples) {
    EXPECT_TRUE(contains(result.out, "\n  " + std::string(example) + "\n"));
  }
}

// What the examples of the lattice and of text read, in a folder that they then run in.
class ExampleFiles {
 public:
  explicit ExampleFiles(const TempFolder& folder) : before_(std::filesystem::current_path()) {
    std::filesystem::current_path(folder.path());
    const auto write = [](const char* path, int64_t rows, float step) {
      std::vector<float> numbers(size_t(rows * 16));
      for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = std::sin(step * float(i * i % 4999));
      write_npy(path, DType::f32, {rows, 16}, std::as_bytes(std::span(numbers)));
    };
    std::string text;
    for (int i = 0; i < 400; ++i) text += "line " + std::to_string(i * i % 97) + " of a text\n";
    write_text("text.txt", text);
    write("vectors.npy", 2000, 0.37f);
    write("queries.npy", 20, 0.11f);
    EXPECT_EQ(run_command({"compress", "vectors.npy", "--anchors", "20"}).status, 0);
    write_text_model("model");
  }
  ~ExampleFiles() { std::filesystem::current_path(before_); }

 private:
  const std::filesystem::path before_;
};

TEST_P(CommandTable, ExamplesWork) {
  const TempFolder scratch;
  const ExampleFiles files(scratch);
  Environment environment = {"TESSERA_QUIET=1"};
  if (GetParam()->name == "cache") {  // not the user's
    environment.push_back("TESSERA_CACHE_DIR=" + scratch.path().native());
  }
  for (const std::string_view example : GetParam()->examples) {
    SCOPED_TRACE(example);
    Words words = split(example);
    ASSERT_GE(words.size(), 2u);
    EXPECT_EQ(words[0], "tessera");
    EXPECT_EQ(words[1], GetParam()->name);
    words.erase(words.begin());
    const CommandResult result = run_command(words, environment);
    EXPECT_EQ(result.status, 0) << result.out;
    EXPECT_NE(result.out, "");
    EXPECT_EQ(result.err, "");
    if (contains(std::string(example), "--json")) {
      EXPECT_TRUE(Json::parse(result.out, "standard output").is_object());
    }
  }
}

TEST_P(CommandTable, WrongOptionsPointToItsHelp) {
  const std::string name(GetParam()->name);
  const CommandResult result = run_command({name, "--hepl"});
  EXPECT_EQ(result.status, 2);
  EXPECT_EQ(result.err, "tessera: " + name + ": unknown option '--hepl'; did you mean '--help'?\n" +
                            "try 'tessera " + name + " --help'\n");
}

TEST_P(CommandTable, IsDocumented) {
  EXPECT_TRUE(is_documented(usage(*GetParam()))) << "docs/cli.md lacks what --help prints:\n"
                                                 << usage(*GetParam());
}

TEST(CommandList, HelpListsEveryCommand) {
  const std::string text = usage();
  for (const Command* command : commands()) {
    EXPECT_TRUE(contains(text, help_line(command->name, command->help)));
  }
  EXPECT_TRUE(is_documented(text)) << "docs/cli.md lacks what --help prints:\n" << text;
}

}  // namespace
}  // namespace tessera::cli
