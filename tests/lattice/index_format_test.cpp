// The format stays what docs/formats/index.md says: data/version1.tsr to version3.tsr were checked
// by a reader that was written from that page alone (read_index.py), and data/version1.txt to
// version3.txt are what it found.
#include <cstdio>

#include "index_support.h"

namespace tessera::lattice {
namespace {

// Split planes: two registers in each half, two factors, then a row of two bytes for each vector.
// The bytes of a vector are in the order of their places.
class PlanesPacker : public BlockPacker {
 public:
  static constexpr int64_t kHot = 384;

  int64_t vector_bytes() const override { return 14; }
  int64_t block_bytes() const override { return kHot + 2 * kBlockVectors; }
  void pack(std::byte* block, int slot, std::span<const std::byte> vector) const override {
    for (int64_t i = 0; i < 14; ++i) block[place(slot, i)] = vector[size_t(i)];
  }
  void unpack(const std::byte* block, int slot, std::span<std::byte> vector) const override {
    for (int64_t i = 0; i < 14; ++i) vector[size_t(i)] = block[place(slot, i)];
  }

 private:
  static int64_t place(int slot, int64_t i) {
    if (i < 8) return slot / 16 * 128 + i / 4 * 64 + slot % 16 * 4 + i % 4;
    if (i < 12) return 256 + (i - 8) / 2 * 64 + slot * 2 + i % 2;
    return kHot + slot * 2 + i % 2;
  }
};

const PlainPacker kPlain(3);
const PlanesPacker kPlanes;
const std::filesystem::path kData = TESSERA_TEST_DIR "/data";

class IndexFormat : public testing::TestWithParam<std::string> {
 protected:
  const BlockPacker& packer() const {
    if (GetParam() == "version3") return kPlanes;
    return kPlain;
  }
};
INSTANTIATE_TEST_SUITE_P(Versions, IndexFormat,
                         testing::Values("version1", "version2", "version3"));

std::string line_of(int64_t id, const Stored& stored) {
  std::string line = std::to_string(id) + " " + std::to_string(stored.cell) + " ";
  for (const std::byte byte : stored.vector) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", unsigned(byte));
    line += digits;
  }
  return line + "\n";
}

TEST_P(IndexFormat, StaysReadable) {
  const auto snapshot = IndexFile(kData / (GetParam() + ".tsr")).snapshot();
  const auto totals = snapshot->verify();
  EXPECT_EQ(totals.vectors, 155);
  EXPECT_EQ(totals.live, 150);
  EXPECT_EQ(snapshot->segments(), 3);
  EXPECT_EQ(snapshot->generation(), 4u);
  std::string text;
  for (const auto& [id, stored] : content_of(*snapshot, packer())) text += line_of(id, stored);
  EXPECT_EQ(text, read_text(kData / (GetParam() + ".txt")));
}

TEST_P(IndexFormat, TheSameChangesGiveTheSameBytes) {
  const TempFolder folder;
  const auto path = folder / "a.tsr";
  const std::vector<float> anchors = some_anchors(4, 2);
  IndexInfo info = some_info(anchors, 2, packer());
  if (GetParam() == "version1") {
    info.tail = TailLayout::padded;
    info.half_anchors = false;
  }
  if (GetParam() == "version3") info.tail = planes_layout(PlanesPacker::kHot);
  write_index(path, info);
  IndexWriter writer(path, packer());
  const auto upsert = [&](uint64_t seed, const std::vector<int64_t>& ids) {
    const Batch rows = random_batch(seed, ids, 4, packer().vector_bytes());
    writer.upsert(rows.cells, rows.ids, rows.vectors);
  };
  std::vector<int64_t> cubes;
  for (int64_t i = 0; i < 150; ++i) cubes.push_back(i * i * i + 5);
  upsert(1, cubes);
  writer.commit();
  upsert(2, {5, 6, (int64_t(1) << 62) + 1});
  writer.erase(std::vector<int64_t>{13, 32});
  writer.commit();
  upsert(3, {7, 6});
  writer.commit();
  EXPECT_TRUE(read_text(path) == read_text(kData / (GetParam() + ".tsr")));
}

}  // namespace
}  // namespace tessera::lattice
