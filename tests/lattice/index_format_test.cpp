// The format stays what docs/formats/index.md says: data/version1.tsr was checked by a reader that
// was written from that page alone (read_index.py), and data/version1.txt is what it found.
#include <cstdio>

#include "index_support.h"

namespace tessera::lattice {
namespace {

const PlainPacker kPacker(3);
const std::filesystem::path kData = TESSERA_TEST_DIR "/data";

TEST(IndexFormat, VersionOneStaysReadable) {
  const auto snapshot = IndexFile(kData / "version1.tsr").snapshot();
  const auto totals = snapshot->verify();
  EXPECT_EQ(totals.vectors, 155);
  EXPECT_EQ(totals.live, 150);
  EXPECT_EQ(snapshot->segments(), 3);
  EXPECT_EQ(snapshot->generation(), 4u);
  std::string text;
  for (const auto& [id, stored] : content_of(*snapshot, kPacker)) {
    char line[64];
    std::snprintf(line, sizeof(line), "%lld %d %02x%02x%02x\n", static_cast<long long>(id),
                  stored.cell, unsigned(stored.vector[0]), unsigned(stored.vector[1]),
                  unsigned(stored.vector[2]));
    text += line;
  }
  EXPECT_EQ(text, read_text(kData / "version1.txt"));
}

TEST(IndexFormat, TheSameChangesGiveTheSameBytes) {
  const TempFolder folder;
  const auto path = folder / "a.tsr";
  const std::vector<float> anchors = some_anchors(4, 2);
  write_index(path, some_info(anchors, 2, kPacker));
  IndexWriter writer(path, kPacker);
  const auto upsert = [&](uint64_t seed, const std::vector<int64_t>& ids) {
    const Batch rows = random_batch(seed, ids, 4, 3);
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
  EXPECT_EQ(read_text(path), read_text(kData / "version1.tsr"));
}

}  // namespace
}  // namespace tessera::lattice
