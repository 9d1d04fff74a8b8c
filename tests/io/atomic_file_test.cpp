#include "tessera/io/atomic_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <vector>

#include "file_size_limit.h"
#include "support/expect_error.h"
#include "temp_folder.h"

namespace tessera {
namespace {

TEST(AtomicFile, CommitShowsAllThatWasWritten) {
  const TempFolder folder;
  AtomicFile file(folder / "a");
  file.write(bytes_of("one "));
  file.write({});
  file.write(bytes_of("two"));
  EXPECT_FALSE(std::filesystem::exists(folder / "a"));
  file.commit();
  EXPECT_EQ(read_text(folder / "a"), "one two");
  EXPECT_EQ(folder.files(), 1u);
}

TEST(AtomicFile, RewritesWhatWasWritten) {
  const TempFolder folder;
  AtomicFile file(folder / "a");
  file.write(bytes_of("one two "));
  file.rewrite(4, bytes_of("2"));
  file.write(bytes_of("three"));  // goes on at the end
  file.rewrite(0, bytes_of("O"));
  file.commit();
  EXPECT_EQ(read_text(folder / "a"), "One 2wo three");
}

TEST(AtomicFile, ReplacesAnOlderFileOnlyAtCommit) {
  const TempFolder folder;
  write_text(folder / "a", "old");
  AtomicFile file(folder / "a");
  file.write(bytes_of("new"));
  EXPECT_EQ(read_text(folder / "a"), "old");
  file.commit();
  EXPECT_EQ(read_text(folder / "a"), "new");
}

TEST(AtomicFile, WithoutCommitNothingChanges) {
  const TempFolder folder;
  write_text(folder / "a", "old");
  {
    AtomicFile file(folder / "a");
    file.write(bytes_of("new"));
    EXPECT_EQ(folder.files(), 2u);
  }
  EXPECT_EQ(read_text(folder / "a"), "old");
  EXPECT_EQ(folder.files(), 1u);
}

TEST(AtomicFile, TwoWritersOfOneFileDoNotMix) {
  const TempFolder folder;
  AtomicFile first(folder / "a"), second(folder / "a");
  first.write(bytes_of("first"));
  second.write(bytes_of("second"));
  first.commit();
  EXPECT_EQ(read_text(folder / "a"), "first");
  second.commit();
  EXPECT_EQ(read_text(folder / "a"), "second");
}

TEST(AtomicFile, LeftoversOfAKilledProcessAreSteppedOver) {
  const TempFolder folder;
  const std::string prefix = cat(".tessera-", ::getpid(), "-");
  int number = 0;
  {
    const AtomicFile probe(folder / "a");
    const auto name =
        std::filesystem::directory_iterator(folder.path())->path().filename().native();
    ASSERT_TRUE(name.starts_with(prefix)) << name;
    number = std::stoi(name.substr(prefix.size()));
  }
  // The names that come next, as if another process of the same id had died here.
  for (int i = 1; i <= 3; ++i) write_text(folder / cat(prefix, number + i, ".tmp"), "x");
  AtomicFile file(folder / "a");
  file.write(bytes_of("new"));
  file.commit();
  EXPECT_EQ(read_text(folder / "a"), "new");
  EXPECT_EQ(folder.files(), 4u);
}

TEST(AtomicFile, PermissionsFollowTheUmask) {
  const TempFolder folder;
  const mode_t before = ::umask(022);
  AtomicFile file(folder / "a");
  file.commit();
  ::umask(before);
  struct stat status = {};
  ASSERT_EQ(::stat((folder / "a").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, mode_t(0644));
}

TEST(AtomicFile, ALinkIsReplacedNotFollowed) {
  const TempFolder folder;
  write_text(folder / "target", "old");
  std::filesystem::create_symlink("target", folder / "link");
  AtomicFile file(folder / "link");
  file.write(bytes_of("new"));
  file.commit();
  EXPECT_EQ(read_text(folder / "link"), "new");
  EXPECT_EQ(read_text(folder / "target"), "old");
}

TEST(AtomicFile, AFullDiskLeavesTheOldFileAlone) {
  const TempFolder folder;
  const auto path = folder / "a";
  write_text(path, "old");
  const std::vector<std::byte> much(1 << 20);
  std::string text;
  {
    const FileSizeLimit limit(64 << 10);
    text = error_text([&] {
      AtomicFile file(path);
      file.write(much);
      file.commit();
    });
  }
  EXPECT_EQ(text, cat("write: cannot write '", path.native(), "': File too large"));
  EXPECT_EQ(read_text(path), "old");
  EXPECT_EQ(folder.files(), 1u);
}

TEST(AtomicFile, AfterAFailureTheTemporaryIsGoneAtOnce) {
  const TempFolder folder;
  const std::vector<std::byte> much(1 << 20);
  AtomicFile file(folder / "a");
  {
    const FileSizeLimit limit(64 << 10);
    EXPECT_THROW(file.write(much), Error);
  }
  EXPECT_EQ(folder.files(), 0u);
  AtomicFile other(folder / "a");
  {
    const FileSizeLimit limit(64 << 10);
    EXPECT_THROW(other.rewrite(0, much), Error);
  }
  EXPECT_EQ(folder.files(), 0u);
}

TEST(AtomicFile, AMissingFolderIsNamed) {
  const TempFolder folder;
  const auto path = folder / "none/a";
  EXPECT_EQ(error_text([&] { AtomicFile file(path); }),
            cat("write: cannot write '", path.native(), "': No such file or directory"));
}

TEST(AtomicFile, AFolderThatVanishesIsNamedAtCommit) {
  const TempFolder folder;
  std::filesystem::create_directory(folder / "sub");
  const auto path = folder / "sub/a";
  AtomicFile file(path);
  std::filesystem::remove_all(folder / "sub");
  EXPECT_EQ(error_text([&] { file.commit(); }),
            cat("write: cannot write '", path.native(), "': No such file or directory"));
}

TEST(AtomicFile, RefusesToReplaceDevicesAndFolders) {
  const TempFolder folder;
  EXPECT_EQ(error_text([] { AtomicFile file("/dev/full"); }),
            "write: cannot write '/dev/full': not a regular file");
  EXPECT_EQ(error_text([&] { AtomicFile file(folder.path()); }),
            cat("write: cannot write '", folder.path().native(), "': not a regular file"));
}

TEST(AtomicFileDeathTest, UseAfterCommitIsABug) {
  GTEST_FLAG_SET(death_test_style, "fast");  // a child of the other style would leave its folder
  const TempFolder folder;
  AtomicFile file(folder / "a");
  file.commit();
  EXPECT_DEATH(file.commit(), "assertion failed: file_.valid");
  EXPECT_DEATH(file.write({}), "assertion failed: file_.valid");
  EXPECT_DEATH(file.rewrite(0, {}), "assertion failed: file_.valid");
}

}  // namespace
}  // namespace tessera
