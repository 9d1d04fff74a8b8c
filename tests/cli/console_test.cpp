#include "tessera/cli/console.h"

#include <gtest/gtest.h>

#include <sstream>

#include "cli/run_command.h"

namespace tessera::cli {
namespace {

TEST(Console, ColoursNeedATerminalThatShowsThem) {
  EXPECT_TRUE(shows_colors(true, "xterm", nullptr));
  EXPECT_TRUE(shows_colors(true, "xterm", "")) << "an empty NO_COLOR counts as unset";
  EXPECT_FALSE(shows_colors(false, "xterm", nullptr));
  EXPECT_FALSE(shows_colors(true, "dumb", nullptr));
  EXPECT_FALSE(shows_colors(true, nullptr, nullptr));
  EXPECT_FALSE(shows_colors(true, "xterm", "1"));
}

TEST(Console, ProgressNeedsATerminal) {
  EXPECT_TRUE(shows_progress(true, "xterm"));
  EXPECT_FALSE(shows_progress(false, "xterm"));
  EXPECT_FALSE(shows_progress(true, "dumb"));
  EXPECT_FALSE(shows_progress(true, ""));
}

TEST(Console, ShowsWarningsAndUnlessQuietNotices) {
  EXPECT_EQ(log_line(LogLevel::warning, "text", nullptr), "tessera: warning: text\n");
  EXPECT_EQ(log_line(LogLevel::warning, "text", "1"), "tessera: warning: text\n");
  EXPECT_EQ(log_line(LogLevel::info, "text", nullptr), "tessera: text\n");
  EXPECT_EQ(log_line(LogLevel::info, "text", ""), "tessera: text\n");
  EXPECT_EQ(log_line(LogLevel::info, "text", "1"), "");
  EXPECT_EQ(log_line(LogLevel::debug, "text", nullptr), "");
}

TEST(Console, ColoursText) {
  std::ostringstream out, err;
  Console console{out, err};
  EXPECT_EQ(console.colored("ok", Color::green), "ok");
  console.colors = true;
  EXPECT_EQ(console.colored("ok", Color::green), "\x1b[32mok\x1b[0m");
  EXPECT_EQ(console.colored("no", Color::red), "\x1b[31mno\x1b[0m");
}

TEST(Console, ProgressIsWrittenOverAndGoneAtTheEnd) {
  std::ostringstream out, err;
  Console console{out, err};
  console.progress = true;
  {
    Progress progress(console);
    progress.show("one");
    progress.show("two");
    progress.clear();
    progress.clear();
    progress.show("three");
  }
  EXPECT_EQ(err.str(), "\r\x1b[Kone\r\x1b[Ktwo\r\x1b[K\r\x1b[Kthree\r\x1b[K");
  EXPECT_EQ(out.str(), "");
}

TEST(Console, ProgressIsSilentElsewhere) {
  std::ostringstream out, err;
  Console console{out, err};
  Progress(console).show("one");
  EXPECT_EQ(err.str(), "");
}

// The command itself, in a terminal and in a pipe.
class CommandConsole : public ::testing::Test {
 protected:
  const Words quick_ = {"selftest", "--quick"};
  static bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  }
};

TEST_F(CommandConsole, ATerminalShowsColoursAndProgress) {
  const CommandResult result = run_in_terminal(quick_, {"TERM=xterm", "NO_COLOR"});
  EXPECT_EQ(result.status, 0);
  EXPECT_TRUE(contains(result.out, "\x1b[32mok\x1b[0m"));
  EXPECT_TRUE(contains(result.out, "\r\x1b[Kop 1/"));
}

TEST_F(CommandConsole, NoColorKeepsTheProgress) {
  const CommandResult result = run_in_terminal(quick_, {"TERM=xterm", "NO_COLOR=1"});
  EXPECT_EQ(result.status, 0);
  EXPECT_FALSE(contains(result.out, "\x1b[3"));
  EXPECT_TRUE(contains(result.out, "\r\x1b[Kop 1/"));
}

TEST_F(CommandConsole, ADumbTerminalGetsPlainText) {
  const CommandResult result = run_in_terminal(quick_, {"TERM=dumb", "NO_COLOR"});
  EXPECT_EQ(result.status, 0);
  EXPECT_TRUE(contains(result.out, " passed\r\n")) << "a terminal ends its lines so";
  EXPECT_FALSE(contains(result.out, "\x1b"));
}

TEST_F(CommandConsole, AFileGetsPlainText) {
  const CommandResult result = run_command(quick_, {"TERM=xterm", "NO_COLOR"});
  EXPECT_EQ(result.status, 0);
  EXPECT_FALSE(contains(result.out, "\x1b"));
  EXPECT_EQ(result.err, "");
}

}  // namespace
}  // namespace tessera::cli
