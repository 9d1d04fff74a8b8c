#include <gtest/gtest.h>

#include "cli/run_command.h"
#include "io/temp_folder.h"
#include "tessera/io/json.h"
#include "tessera/runtime/binary_cache.h"

namespace tessera {
namespace {

Environment in(const TempFolder& folder) {
  return {"TESSERA_CACHE_DIR=" + folder.path().native(), "TESSERA_CACHE_MAX_MB=3"};
}

TEST(CacheCommand, ShowsAndClears) {
  const TempFolder folder;
  const std::string empty = "folder      " + folder.path().native() +
                            "\nbinaries    0\nsize        0.0 MiB of at most 3.0 MiB\n";
  EXPECT_EQ(run_command({"cache", "info"}, in(folder)).out, empty);
  BinaryCache(folder.path().native(), 3 << 20).store({"s", "", "", ""}, std::string(1 << 20, 'b'));
  const CommandResult info = run_command({"cache", "info"}, in(folder));
  EXPECT_EQ(info.status, 0);
  EXPECT_NE(
      info.out.find("\nbinaries    1\nsize        1.0 MiB of at most 3.0 MiB\noldest use  20"),
      std::string::npos)
      << info.out;
  const CommandResult clear = run_command({"cache", "clear"}, in(folder));
  EXPECT_EQ(clear.status, 0);
  EXPECT_EQ(clear.out, "freed 1.0 MiB\n");
  EXPECT_EQ(folder.files(), 0u);
  EXPECT_EQ(run_command({"cache", "info"}, in(folder)).out, empty);
}

TEST(CacheCommand, WritesJson) {
  const TempFolder folder;
  BinaryCache(folder.path().native(), 3 << 20).store({"s", "", "", ""}, "1234");
  const Json info = Json::parse(run_command({"cache", "info", "--json"}, in(folder)).out, "info");
  EXPECT_EQ(info.get<std::string>("folder"), folder.path().native());
  EXPECT_EQ(info.get<int64_t>("entries"), 1);
  EXPECT_EQ(info.get<int64_t>("bytes"), 60);
  EXPECT_EQ(info.get<int64_t>("max_bytes"), 3 << 20);
  EXPECT_EQ(info.get<std::string>("oldest"), info.get<std::string>("newest"));
  EXPECT_EQ(info.get<std::string>("oldest").size(), std::string("2026-03-01T12:00:00Z").size());
  const Json clear =
      Json::parse(run_command({"cache", "clear", "--json"}, in(folder)).out, "clear");
  EXPECT_EQ(clear.get<int64_t>("freed_bytes"), 60);
}

TEST(CacheCommand, SaysThatTheCacheIsOff) {
  const Environment off = {"TESSERA_CACHE_DIR="};
  EXPECT_EQ(run_command({"cache", "info"}, off).out, "folder      none: the cache is off\n");
  EXPECT_EQ(run_command({"cache", "clear"}, off).out, "freed 0.0 MiB\n");
  const Json info = Json::parse(run_command({"cache", "info", "--json"}, off).out, "info");
  EXPECT_TRUE(info.at("folder").is_null());
  EXPECT_TRUE(info.at("oldest").is_null());
}

TEST(CacheCommand, RefusesOtherWords) {
  const auto error = [](const Words& words) {
    const CommandResult result = run_command(words);
    EXPECT_EQ(result.status, 2);
    return result.err;
  };
  const std::string hint = "\ntry 'tessera cache --help'\n";
  EXPECT_EQ(error({"cache"}), "tessera: cache: expected info or clear, got nothing" + hint);
  EXPECT_EQ(error({"cache", "fill"}), "tessera: cache: expected info or clear, got fill" + hint);
  EXPECT_EQ(error({"cache", "info", "clear"}),
            "tessera: cache: expected one action, got also 'clear'" + hint);
  const CommandResult limit = run_command({"cache", "info"}, {"TESSERA_CACHE_MAX_MB=much"});
  EXPECT_EQ(limit.status, 1);
  EXPECT_EQ(limit.err,
            "tessera: TESSERA_CACHE_MAX_MB: expected a number from 1 to 1000000, got 'much'\n");
}

}  // namespace
}  // namespace tessera
