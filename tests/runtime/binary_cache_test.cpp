#include "tessera/runtime/binary_cache.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "io/file_size_limit.h"
#include "io/temp_folder.h"
#include "runtime/child.h"
#include "support/expect_error.h"
#include "tessera/base/log.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kPlenty = 1 << 20;
constexpr int64_t kHeader = 56;
constexpr BinaryKey kKey = {"kernel void k() {}", "-O2", "compiler 1", "device, driver 1"};

// What the library says while this object lives.
class Listener {
 public:
  Listener() {
    before_ = set_log_sink([this](LogLevel level, std::string_view text) {
      if (level != LogLevel::debug) heard.emplace_back(text);
    });
  }
  ~Listener() { set_log_sink(before_); }

  std::vector<std::string> heard;

 private:
  LogSink before_;
};

fs::path only_file(const TempFolder& folder) {
  EXPECT_EQ(folder.files(), 1u);
  return fs::directory_iterator(folder.path())->path();
}

// Last used `seconds` after 1970.
void set_used(const fs::path& path, time_t seconds) {
  const timespec times[2] = {{seconds, 0}, {seconds, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
}

BinaryKey named(std::string_view source) { return {source, "", "", ""}; }

TEST(BinaryCache, FindsWhatWasStoredInThisProcessOrAnother) {
  const TempFolder folder;
  const Listener listener;
  std::string binary = "any bytes";
  binary += '\0';
  BinaryCache cache(folder.path().native(), kPlenty);
  EXPECT_EQ(cache.find(kKey), std::nullopt);
  cache.store(kKey, binary);
  EXPECT_EQ(cache.find(kKey), binary);
  EXPECT_EQ(BinaryCache(folder.path().native(), kPlenty).find(kKey), binary);
  cache.store(kKey, "");  // the last one wins, and a binary may be empty
  EXPECT_EQ(cache.find(kKey), "");
  EXPECT_EQ(folder.files(), 1u);
  EXPECT_EQ(listener.heard.size(), 0u);
}

// Without turns, all of them would compile.
TEST(BinaryCache, OneOfManyProcessesCompiles) {
  const TempFolder folder;
  const std::string log = (folder.path() / "compiled").native();
  const auto work = [&] {
    BinaryCache cache((folder.path() / "cache").native(), kPlenty);
    const Descriptor turn = cache.wait_turn(kKey);
    if (cache.find(kKey)) return 0;
    const Descriptor out(::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0666));
    ::usleep(50'000);  // it takes its time
    if (::write(out.get(), "x", 1) != 1) return 1;
    cache.store(kKey, "binary");
    return 0;
  };
  std::vector<pid_t> children;
  for (int i = 0; i < 8; ++i) children.push_back(start_child(work));
  for (const pid_t child : children) EXPECT_EQ(wait_for_child(child), 0);
  EXPECT_EQ(fs::file_size(log), 1u);
}

TEST(BinaryCache, NobodyWaitsForATurnAtNoFolder) {
  BinaryCache off("", kPlenty);
  EXPECT_FALSE(off.wait_turn(kKey).valid());
  BinaryCache nowhere("/proc/none/cache", kPlenty);
  EXPECT_FALSE(nowhere.wait_turn(kKey).valid());
}

TEST(BinaryCache, EveryPartOfTheKeyCounts) {
  const TempFolder folder;
  BinaryCache cache(folder.path().native(), kPlenty);
  const BinaryKey keys[] = {{"ab", "c", "d", "e"}, {"a", "bc", "d", "e"}, {"ab", "x", "d", "e"},
                            {"ab", "c", "x", "e"}, {"ab", "c", "d", "x"}, {"ab", "c", "de", ""},
                            {"", "", "", "abcde"}};
  for (const BinaryKey& key : keys) cache.store(key, cat(&key - keys));
  EXPECT_EQ(folder.files(), std::size(keys));
  for (const BinaryKey& key : keys) EXPECT_EQ(cache.find(key), cat(&key - keys));
}

// Entries of earlier runs stay readable: the name and the bytes are those of the specification.
TEST(BinaryCache, TheFileIsAsSpecified) {
  const TempFolder folder;
  BinaryCache(folder.path().native(), kPlenty).store(named("s"), "123456789");
  const fs::path path = only_file(folder);
  // Version, then every part behind its length; hashed by another implementation.
  const std::string hash = "29ab93fb353ae7fcab628d09dd24e8fbdd924fa7c04efb79472ce8692a8125c8";
  EXPECT_EQ(path.filename(), hash + ".bin");
  std::string expected("TESSBIN\n\1\0\0\0\x83\x92\x06\xe3\x09\0\0\0\0\0\0\0", 24);
  for (size_t i = 0; i < hash.size(); i += 2)
    expected += char(std::stoi(hash.substr(i, 2), nullptr, 16));
  EXPECT_EQ(read_text(path), expected + "123456789");
}

TEST(BinaryCache, EveryChangedByteIsNoticed) {
  const TempFolder folder;
  BinaryCache(folder.path().native(), kPlenty).store(kKey, "the binary of a kernel");
  const fs::path path = only_file(folder);
  const std::string good = read_text(path);
  for (size_t i = 0; i < good.size(); ++i) {
    for (const char flip : {char(1), char(0x80)}) {
      std::string bad = good;
      bad[i] = char(bad[i] ^ flip);
      write_text(path, bad);
      const Listener listener;
      BinaryCache cache(folder.path().native(), kPlenty);
      ASSERT_EQ(cache.find(kKey), std::nullopt) << i;
      ASSERT_FALSE(fs::exists(path)) << i;
      ASSERT_EQ(listener.heard.size(), 1u) << i;
    }
  }
}

TEST(BinaryCache, EveryOtherLengthIsNoticed) {
  const TempFolder folder;
  BinaryCache(folder.path().native(), kPlenty).store(kKey, "the binary of a kernel");
  const fs::path path = only_file(folder);
  const std::string good = read_text(path);
  for (size_t length = 0; length <= good.size() + 2; ++length) {
    if (length == good.size()) continue;
    write_text(path, (good + "..").substr(0, length));
    const Listener listener;
    ASSERT_EQ(BinaryCache(folder.path().native(), kPlenty).find(kKey), std::nullopt) << length;
    ASSERT_FALSE(fs::exists(path)) << length;
    ASSERT_EQ(listener.heard.size(), 1u) << length;
  }
}

TEST(BinaryCache, SaysOnceWhatIsWrong) {
  const TempFolder folder;
  BinaryCache cache(folder.path().native(), kPlenty);
  cache.store(kKey, "binary");
  const fs::path path = only_file(folder);
  cache.store(named("other"), "binary");
  fs::path other;
  for (const auto& entry : fs::directory_iterator(folder.path())) {
    if (entry.path() != path) other = entry.path();
  }
  const Listener listener;
  fs::copy_file(other, path, fs::copy_options::overwrite_existing);
  EXPECT_EQ(cache.find(kKey), std::nullopt);
  write_text(other, "short");
  EXPECT_EQ(cache.find(named("other")), std::nullopt);
  ASSERT_EQ(listener.heard.size(), 1u);
  EXPECT_EQ(listener.heard[0],
            "cache: removed '" + path.native() + "', it is another file; compiling it again");
  cache.store(kKey, "binary");  // and goes on
  EXPECT_EQ(cache.find(kKey), "binary");
}

TEST(BinaryCache, NamesTheDamage) {
  const TempFolder folder;
  BinaryCache(folder.path().native(), kPlenty).store(kKey, "binary");
  const fs::path path = only_file(folder);
  const std::string good = read_text(path);
  const auto said_of = [&](const std::string& content) {
    write_text(path, content);
    const Listener listener;
    EXPECT_EQ(BinaryCache(folder.path().native(), kPlenty).find(kKey), std::nullopt);
    return listener.heard.empty() ? "" : listener.heard[0];
  };
  const auto expected = [&](const char* reason) {
    return cat("cache: removed '", path.native(), "', ", reason, "; compiling it again");
  };
  EXPECT_EQ(said_of(good.substr(0, 20)), expected("it is cut short"));
  EXPECT_EQ(said_of(good + "x"), expected("its length differs"));
  EXPECT_EQ(said_of(good.substr(0, good.size() - 1) + "x"), expected("its checksum differs"));
}

// A length of 2^60 must not be allocated, and a folder in a file's place is no file.
TEST(BinaryCache, SurvivesLiesAboutTheLength) {
  const TempFolder folder;
  BinaryCache cache(folder.path().native(), kPlenty);
  cache.store(kKey, "binary");
  const fs::path path = only_file(folder);
  std::string lie = read_text(path);
  lie[16 + 7] = 0x10;
  write_text(path, lie);
  const Listener listener;
  EXPECT_EQ(cache.find(kKey), std::nullopt);
  lie.replace(16, 8, std::string("\0\0\0\0\1\0\0\0", 8));
  write_text(path, lie);
  fs::resize_file(path, uint64_t(kHeader) + (uint64_t(1) << 32));  // sparse, and as long as it says
  EXPECT_EQ(cache.find(kKey), std::nullopt);
  EXPECT_FALSE(fs::exists(path));
  fs::create_directory(path);
  EXPECT_EQ(cache.find(kKey), std::nullopt);
  EXPECT_EQ(listener.heard.size(), 1u);
}

TEST(BinaryCache, ABinaryTheDriverRefusesIsDropped) {
  const TempFolder folder;
  BinaryCache cache(folder.path().native(), kPlenty);
  cache.store(kKey, "binary");
  const fs::path path = only_file(folder);
  const Listener listener;
  cache.drop(kKey, "the driver refuses it");
  EXPECT_EQ(cache.find(kKey), std::nullopt);
  EXPECT_EQ(folder.files(), 0u);
  ASSERT_EQ(listener.heard.size(), 1u);
  EXPECT_EQ(listener.heard[0],
            "cache: removed '" + path.native() + "', the driver refuses it; compiling it again");
}

// Sixteen entries of 100 bytes fill it; then the two used longest ago go, because room is made for
// 1/16 of the limit.
TEST(BinaryCache, RemovesWhatWasUsedLongestAgo) {
  const TempFolder folder;
  BinaryCache cache(folder.path().native(), 1600);
  const std::string binary(100 - kHeader, 'b');
  std::vector<std::string> names;
  for (int i = 0; i < 16; ++i) {
    names.push_back(cat("source ", i));
    std::vector<fs::path> before;
    for (const auto& entry : fs::directory_iterator(folder.path())) before.push_back(entry.path());
    cache.store(named(names.back()), binary);
    for (const auto& entry : fs::directory_iterator(folder.path())) {
      if (std::ranges::find(before, entry.path()) == before.end()) set_used(entry.path(), 1000 + i);
    }
  }
  EXPECT_EQ(cache.info().entries, 16);
  EXPECT_EQ(cache.find(named(names[0])), binary);  // now used last
  cache.store(named("one more"), binary);
  EXPECT_EQ(cache.info().entries, 15);
  EXPECT_EQ(cache.info().bytes, 1500);
  EXPECT_EQ(cache.find(named(names[0])), binary);
  EXPECT_EQ(cache.find(named(names[1])), std::nullopt);
  EXPECT_EQ(cache.find(named(names[2])), std::nullopt);
  EXPECT_EQ(cache.find(named(names[3])), binary);
  EXPECT_EQ(cache.find(named("one more")), binary);
}

TEST(BinaryCache, StaysBelowItsLimit) {
  const TempFolder folder;
  BinaryCache cache(folder.path().native(), 2000);
  for (int i = 0; i < 100; ++i) {
    cache.store(named(cat(i)), std::string(size_t(i), 'b'));
    ASSERT_LE(cache.info().bytes, 2000);
  }
  const Listener listener;
  cache.store(named("large"), std::string(2000, 'b'));
  EXPECT_EQ(cache.find(named("large")), std::nullopt);
  EXPECT_GT(cache.info().entries, 5);
  EXPECT_EQ(listener.heard.size(), 0u);
}

TEST(BinaryCache, TellsWhatItHolds) {
  const TempFolder folder;
  BinaryCache cache((folder / "not" / "yet").native(), kPlenty);
  EXPECT_EQ(cache.info().entries, 0);
  EXPECT_EQ(cache.info().oldest, std::nullopt);
  EXPECT_FALSE(fs::exists(folder / "not"));
  cache.store(kKey, "1234");
  set_used(fs::directory_iterator(folder / "not" / "yet")->path(), 1000);
  cache.store(named("other"), "123456");
  const CacheInfo info = cache.info();
  EXPECT_EQ(info.folder, (folder / "not" / "yet").native());
  EXPECT_EQ(info.entries, 2);
  EXPECT_EQ(info.bytes, 2 * kHeader + 10);
  EXPECT_EQ(info.max_bytes, kPlenty);
  EXPECT_EQ(info.oldest, 1000);
  EXPECT_GT(info.newest, 1000);
  EXPECT_EQ(cache.clear(), 2 * kHeader + 10);
  EXPECT_EQ(cache.clear(), 0);
  EXPECT_EQ(cache.info().entries, 0);
}

TEST(BinaryCache, ClearsItsOwnFilesAlone) {
  const TempFolder folder;
  BinaryCache cache(folder.path().native(), kPlenty);
  cache.store(kKey, "1234");
  write_text(folder / "notes.bin", "mine");
  write_text(folder / ".tessera-1-2.tmp", "somebody writes this now");
  write_text(folder / ".tessera-1-1.tmp", "left by a process that was killed");
  set_used(folder / ".tessera-1-1.tmp", 1000);
  EXPECT_EQ(cache.clear(), kHeader + 4);
  EXPECT_TRUE(fs::exists(folder / "notes.bin"));
  EXPECT_TRUE(fs::exists(folder / ".tessera-1-2.tmp"));
  EXPECT_EQ(folder.files(), 2u);
}

TEST(BinaryCache, WorksWithoutAFolderThatCanBeMade) {
  const TempFolder folder;
  write_text(folder / "file", "");
  const std::string inside = (folder / "file" / "cache").native();
  const Listener listener;
  BinaryCache cache(inside, kPlenty);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(cache.find(kKey), std::nullopt);
    cache.store(kKey, "1234");
  }
  ASSERT_EQ(listener.heard.size(), 1u);
  EXPECT_EQ(listener.heard[0],
            "cache: cannot make '" + inside + "': Not a directory; compiled kernels are not kept");
  EXPECT_EQ(error_text([&] { cache.info(); }),
            "cache: cannot list '" + inside + "': Not a directory");
}

// In a process of its own, because root may write everywhere and must become somebody else.
TEST(BinaryCache, AReadOnlyFolderIsStillRead) {
  constexpr uid_t kNobody = 65534;
  const TempFolder folder;
  const auto work = [&] {
    if (::geteuid() == 0 && (::chown(folder.path().c_str(), kNobody, kNobody) != 0 ||
                             ::setgid(kNobody) != 0 || ::setuid(kNobody) != 0)) {
      return 77;
    }
    BinaryCache(folder.path().native(), kPlenty).store(kKey, "1234");
    ::chmod(folder.path().c_str(), 0500);
    const Listener listener;
    BinaryCache cache(folder.path().native(), kPlenty);
    if (cache.find(kKey) != "1234") return 1;
    for (int i = 0; i < 3; ++i) cache.store(named(cat(i)), "1234");
    if (listener.heard.size() != 1) return 2;
    if (cache.find(kKey) != "1234" || cache.info().entries != 1) return 3;
    if (error_text([&] { cache.clear(); }).find("cache: cannot remove '") != 0) return 4;
    ::chmod(folder.path().c_str(), 0700);
    return 0;
  };
  const int status = wait_for_child(start_child(work));
  if (status == 77) GTEST_SKIP() << "root may not become another user here";
  EXPECT_EQ(status, 0);
}

TEST(BinaryCache, AFullDiskIsSaidOnce) {
  const TempFolder folder;
  const Listener listener;
  BinaryCache cache(folder.path().native(), kPlenty);
  cache.store(kKey, "1234");
  {
    const FileSizeLimit limit(100);
    cache.store(named("large"), std::string(1000, 'b'));
    cache.store(named("larger"), std::string(2000, 'b'));
  }
  ASSERT_EQ(listener.heard.size(), 1u);
  EXPECT_NE(listener.heard[0].find("File too large; compiled kernels are not kept"),
            std::string::npos);
  EXPECT_EQ(folder.files(), 1u);
  EXPECT_EQ(cache.find(kKey), "1234");
  EXPECT_EQ(cache.find(named("large")), std::nullopt);
}

TEST(BinaryCache, CanBeOff) {
  const Listener listener;
  BinaryCache cache("", kPlenty);
  cache.store(kKey, "1234");
  cache.drop(kKey, "");
  EXPECT_EQ(cache.find(kKey), std::nullopt);
  EXPECT_EQ(cache.info().folder, "");
  EXPECT_EQ(cache.info().entries, 0);
  EXPECT_EQ(cache.clear(), 0);
  EXPECT_EQ(listener.heard.size(), 0u);
}

TEST(CacheSettings, FollowTheEnvironment) {
  const auto folder = [](const char* dir, const char* xdg, const char* home) {
    return cache_settings(dir, xdg, home, nullptr).folder;
  };
  EXPECT_EQ(folder("/own", "/xdg", "/h"), "/own");
  EXPECT_EQ(folder("", "/xdg", "/h"), "");
  EXPECT_EQ(folder(nullptr, "/xdg", "/h"), "/xdg/tessera");
  EXPECT_EQ(folder(nullptr, "relative", "/h"), "/h/.cache/tessera");
  EXPECT_EQ(folder(nullptr, "", "/h"), "/h/.cache/tessera");
  EXPECT_EQ(folder(nullptr, nullptr, nullptr), "");
  const auto limit = [](const char* text) { return cache_settings("", "", "", text).max_bytes; };
  EXPECT_EQ(limit(nullptr), 512 << 20);
  EXPECT_EQ(limit(""), 512 << 20);
  EXPECT_EQ(limit("3"), 3 << 20);
  for (const std::string text : {"0", "-1", "x", "3x", "1000001", "99999999999999999999"}) {
    EXPECT_EQ(error_text([&] { limit(text.c_str()); }),
              "TESSERA_CACHE_MAX_MB: expected a number from 1 to 1000000, got '" + text + "'");
  }
}

}  // namespace
}  // namespace tessera
