#include "tessera/lattice/vlc_import.h"

#include <limits>

#include "index_support.h"
#include "support/expect_error.h"
#include "tessera/base/half.h"

namespace tessera::lattice {
namespace {

template <class T>
void append(std::string& file, T value) {
  file.append(reinterpret_cast<const char*>(&value), sizeof(T));
}

std::string header(uint32_t m, uint32_t d, uint32_t n) {
  std::string file;
  append(file, uint32_t(0x564C4341));
  append(file, uint16_t(1));
  append(file, m);
  append(file, d);
  append(file, n);
  append(file, uint8_t(0));
  return file;
}

// 3 anchors of 2 dimensions, 5 points.
std::string small_file() {
  std::string file = header(3, 2, 5);
  for (int i = 0; i < 6; ++i) append(file, f16(0.25f * float(i) - 1).bits);
  for (const uint32_t cell : {2u, 0u, 2u, 2u, 0u}) append(file, cell);
  return file;
}

TEST(VlcImport, GivesAnIndexWithoutCodes) {
  const TempFolder folder;
  write_text(folder / "old.idx", small_file());
  import_vlc(folder / "old.idx", folder / "new.tsr");
  const auto snapshot = IndexFile(folder / "new.tsr").snapshot();
  const IndexInfo& info = snapshot->info();
  EXPECT_EQ(info.dim, 2);
  EXPECT_EQ(info.metric, Metric::l2);
  EXPECT_EQ(info.block_bytes, 0);
  EXPECT_TRUE(info.blobs.empty());
  const std::vector<float> anchors = {-1, -0.75f, -0.5f, -0.25f, 0, 0.25f};
  EXPECT_TRUE(std::ranges::equal(info.anchors, anchors));
  const Content expected = {{0, {2, {}}}, {1, {0, {}}}, {2, {2, {}}}, {3, {2, {}}}, {4, {0, {}}}};
  EXPECT_EQ(content_of(*snapshot, PlainPacker(0)), expected);
  EXPECT_EQ(snapshot->segments(), 1);
  snapshot->verify();
}

TEST(VlcImport, NoPoints) {
  const TempFolder folder;
  write_text(folder / "old.idx", header(1, 1, 0) + std::string(2, '\0'));
  import_vlc(folder / "old.idx", folder / "new.tsr");
  EXPECT_EQ(IndexFile(folder / "new.tsr").snapshot()->stored(), 0);
}

std::string refusal(const std::string& file) {
  return error_text([&] { parse_vlc(bytes_of(file), "x"); });
}

std::string replaced(size_t at, std::string_view bytes) {
  return small_file().replace(at, bytes.size(), bytes);
}

TEST(VlcImport, LiesAreNamed) {
  using namespace std::string_view_literals;
  EXPECT_EQ(refusal(""), "vlc: x: expected a header of 19 bytes, got 0");
  EXPECT_EQ(refusal(small_file().substr(0, 18)), "vlc: x: expected a header of 19 bytes, got 18");
  EXPECT_EQ(refusal(replaced(3, "W")),
            "vlc: x: expected 0x564C4341 at byte 0, got other leading bytes");
  EXPECT_EQ(refusal(replaced(4, "\2")), "vlc: x: expected version 1 at byte 4, got 2");
  const std::string range =
      "vlc: x: expected m at byte 6 and d at byte 10 from 1 to 2^31 - 1, got ";
  EXPECT_EQ(refusal(header(0, 2, 0)), range + "0 and 2");
  EXPECT_EQ(refusal(header(2, 0, 0)), range + "2 and 0");
  EXPECT_EQ(refusal(header(0x80000000u, 1, 0)), range + "2147483648 and 1");
  const auto sizes = [](uint32_t m, uint32_t d, uint32_t n, size_t got) {
    return cat("vlc: x: expected ", m, " anchors of ", d, " f16 and ", n,
               " u32 after byte 19, got ", got, " bytes");
  };
  EXPECT_EQ(refusal(small_file() + "x"), sizes(3, 2, 5, 33));
  EXPECT_EQ(refusal(small_file().substr(0, 50)), sizes(3, 2, 5, 31));
  EXPECT_EQ(refusal(replaced(14, "\xff\xff\xff\xff"sv)), sizes(3, 2, 0xffffffffu, 32));
  EXPECT_EQ(refusal(header(0x7fffffff, 0x7fffffff, 0xffffffffu)),
            sizes(0x7fffffff, 0x7fffffff, 0xffffffffu, 0));
  // 2 * m * d is 2^32: 0 in 32 bits.
  EXPECT_EQ(refusal(header(0x40000000, 2, 5) + small_file().substr(19)),
            sizes(0x40000000, 2, 5, 32));
  EXPECT_EQ(refusal(replaced(25, "\x00\x7e"sv)),
            "vlc: x: expected finite anchors, got nan in row 1, byte 25");
  EXPECT_EQ(refusal(replaced(27, "\x00\xfc"sv)),
            "vlc: x: expected finite anchors, got -inf in row 2, byte 27");
  EXPECT_EQ(refusal(replaced(39, "\3")),
            "vlc: x: expected a cell below 3 for point 2, got 3 at byte 39");
}

TEST(VlcImport, EveryTruncationIsRefusedAndNothingIsWritten) {
  const TempFolder folder;
  const std::string file = small_file();
  for (size_t length = 0; length < file.size(); ++length) {
    write_text(folder / "old.idx", file.substr(0, length));
    EXPECT_THROW(import_vlc(folder / "old.idx", folder / "new.tsr"), Error) << length;
  }
  EXPECT_EQ(folder.files(), 1u);
}

TEST(VlcImport, EveryByteReplacedIsRefusedOrReads) {
  const std::string good = small_file();
  for (size_t i = 0; i < good.size(); ++i) {
    for (int value = 0; value < 256; ++value) {
      std::string file = good;
      file[i] = char(value);
      try {
        const VlcIndex index = parse_vlc(bytes_of(file), "x");
        for (const int32_t cell : index.assignments) {
          ASSERT_LT(size_t(cell), index.anchors.size() / size_t(index.dim));
        }
      } catch (const Error&) {
      }
    }
  }
}

}  // namespace
}  // namespace tessera::lattice
