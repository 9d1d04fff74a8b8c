#include "tessera/io/mapped_range.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "support/expect_error.h"
#include "temp_folder.h"

namespace tessera {
namespace {

std::string pattern(size_t size) {
  std::string text;
  for (size_t i = 0; i < size; ++i) text += char('a' + i * 7 % 26);
  return text;
}

Descriptor open_file(const std::filesystem::path& path) {
  return Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
}

TEST(MappedRange, ShowsThePartThatWasAskedFor) {
  const TempFolder folder;
  const std::string text = pattern(10'000);
  write_text(folder / "a", text);
  const Descriptor file = open_file(folder / "a");
  for (const auto& [begin, end] :
       {std::pair(0, 10'000), {0, 1}, {1, 9'999}, {4096, 8192}, {5000, 5001}, {9'999, 10'000}}) {
    const MappedRange range(file, begin, end, "a");
    EXPECT_EQ(range.begin(), begin);
    EXPECT_EQ(range.end(), end);
    EXPECT_TRUE(std::ranges::equal(range.bytes(),
                                   bytes_of(text).subspan(size_t(begin), size_t(end - begin))));
    EXPECT_EQ(range.bytes(end - 1, 1)[0], bytes_of(text)[size_t(end - 1)]);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(range.bytes().data()) % 4096, uintptr_t(begin % 4096));
  }
  EXPECT_TRUE(MappedRange(file, 5, 5, "a").bytes().empty());
}

TEST(MappedRange, StaysWhereItIsWhenTheFileGrows) {
  const TempFolder folder;
  write_text(folder / "a", pattern(5000));
  const Descriptor file = open_file(folder / "a");
  const MappedRange first(file, 0, 5000, "a");
  std::ofstream(folder / "a", std::ios::app) << "more";
  const MappedRange second(file, 5000, 5004, "a");
  EXPECT_TRUE(std::ranges::equal(first.bytes(), bytes_of(pattern(5000))));
  EXPECT_TRUE(std::ranges::equal(second.bytes(), bytes_of("more")));
}

TEST(MappedRange, WhatCannotBeMappedIsNamed) {
  const TempFolder folder;
  const Descriptor file = open_file(folder.path());
  EXPECT_EQ(error_text([&] { MappedRange range(file, 0, 10, "a"); }),
            "map: cannot read 'a': No such device");
}

}  // namespace
}  // namespace tessera
