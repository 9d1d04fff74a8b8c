#include "tessera/io/mapped_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <type_traits>

#include "support/expect_error.h"
#include "temp_folder.h"

namespace tessera {
namespace {

std::string text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

TEST(MappedFile, ShowsTheWholeFile) {
  const TempFolder folder;
  const std::string text(100001, 'x');
  write_text(folder / "a", text);
  EXPECT_EQ(text_of(MappedFile(folder / "a")), text);
}

TEST(MappedFile, AnEmptyFileIsAnEmptySpan) {
  const TempFolder folder;
  write_text(folder / "a", "");
  EXPECT_TRUE(MappedFile(folder / "a").bytes().empty());
}

TEST(MappedFile, MovesButDoesNotCopy) {
  static_assert(!std::is_copy_constructible_v<MappedFile>);
  static_assert(!std::is_copy_assignable_v<MappedFile>);
  const TempFolder folder;
  write_text(folder / "a", "first");
  write_text(folder / "b", "second");
  MappedFile a(folder / "a");
  const std::byte* address = a.bytes().data();
  MappedFile moved(std::move(a));
  EXPECT_EQ(moved.bytes().data(), address);
  moved = MappedFile(folder / "b");
  EXPECT_EQ(text_of(moved), "second");
}

TEST(MappedFile, OutlivesTheNameOfItsFile) {
  const TempFolder folder;
  write_text(folder / "a", "still here");
  const MappedFile file(folder / "a");
  std::filesystem::remove(folder / "a");
  EXPECT_EQ(text_of(file), "still here");
}

TEST(MappedFile, AMissingFileIsNamed) {
  const TempFolder folder;
  const auto path = folder / "missing";
  EXPECT_EQ(error_text([&] { MappedFile file(path); }),
            cat("map: cannot read '", path.native(), "': No such file or directory"));
}

TEST(MappedFile, OnlyRegularFiles) {
  const TempFolder folder;
  const auto pipe = folder / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(error_text([&] { MappedFile file(pipe); }),
            cat("map: cannot read '", pipe.native(), "': not a regular file"));
  EXPECT_EQ(error_text([&] { MappedFile file(folder.path()); }),
            cat("map: cannot read '", folder.path().native(), "': not a regular file"));
  EXPECT_EQ(error_text([] { MappedFile file("/dev/zero"); }),
            "map: cannot read '/dev/zero': not a regular file");
}

TEST(MappedFile, AFileLargerThanTheAddressSpaceIsRefused) {
  const std::string path = cat("/dev/shm/tessera-test-", ::getpid());
  write_text(path, "x");
  if (::truncate(path.c_str(), off_t(1) << 60) != 0) {
    std::filesystem::remove(path);
    GTEST_SKIP() << "no filesystem here takes a sparse file of that size";
  }
  const std::string text = error_text([&] { MappedFile file(path); });
  std::filesystem::remove(path);
  EXPECT_EQ(text, cat("map: cannot read '", path, "': Cannot allocate memory"));
}

}  // namespace
}  // namespace tessera
