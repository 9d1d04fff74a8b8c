#include "tessera/base/log.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace tessera {
namespace {

// Puts the sink before back, whatever the test does.
class LogTest : public testing::Test {
 protected:
  void SetUp() override { before_ = set_log_sink(nullptr); }
  void TearDown() override { set_log_sink(before_); }

 private:
  LogSink before_;
};

TEST_F(LogTest, WithoutASinkMessagesAreDropped) {
  EXPECT_NO_THROW(log_warning("nobody listens"));
  EXPECT_FALSE(set_log_sink(nullptr));
}

TEST_F(LogTest, TheSinkGetsLevelAndText) {
  std::vector<std::pair<LogLevel, std::string>> got;
  set_log_sink([&](LogLevel level, std::string_view text) { got.emplace_back(level, text); });
  log_warning("recompiled ", 8, " times");
  log_message(LogLevel::debug, "detail");
  const std::vector<std::pair<LogLevel, std::string>> expected = {
      {LogLevel::warning, "recompiled 8 times"}, {LogLevel::debug, "detail"}};
  EXPECT_EQ(got, expected);
}

TEST_F(LogTest, ReplacingReturnsTheSinkBefore) {
  int first = 0, second = 0;
  set_log_sink([&](LogLevel, std::string_view) { ++first; });
  const LogSink old = set_log_sink([&](LogLevel, std::string_view) { ++second; });
  log_warning("x");
  old(LogLevel::info, "y");
  EXPECT_EQ(first, 1);
  EXPECT_EQ(second, 1);
}

TEST_F(LogTest, ASinkMayReplaceItselfAndLog) {
  std::vector<std::string> got;
  set_log_sink([&](LogLevel, std::string_view text) {
    got.push_back("first " + std::string(text));
    set_log_sink([&](LogLevel, std::string_view t) { got.push_back("second " + std::string(t)); });
    log_warning("inner");
  });
  log_warning("outer");
  log_warning("later");
  EXPECT_EQ(got, (std::vector<std::string>{"first outer", "second inner", "second later"}));
}

TEST_F(LogTest, ASinkIsNotRunningOnceReplaced) {
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    while (!stop) log_warning("x");
  });
  for (int i = 0; i < 200; ++i) {
    int count = 0;  // dies at the end of the round; a late call would write into it
    set_log_sink([&count](LogLevel, std::string_view) { ++count; });
    std::this_thread::yield();
    set_log_sink(nullptr);
    const int seen = count;
    std::this_thread::yield();
    ASSERT_EQ(seen, count);
  }
  stop = true;
  writer.join();
}

}  // namespace
}  // namespace tessera
