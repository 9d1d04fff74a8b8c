// The format stays what docs/formats/index.md says: data/version1.tsr and version2.tsr were checked
// by a reader that was written from that page alone (read_index.py), and data/version1.txt and
// version2.txt are what it found.
#include <cstdio>

#include "index_support.h"

namespace tessera::lattice {
namespace {

const PlainPacker kPacker(3);
const std::filesystem::path kData = TESSERA_TEST_DIR "/data";

class IndexFormat : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Versions, IndexFormat, testing::Values("version1", "version2"));

TEST_P(IndexFormat, StaysReadable) {
  const auto snapshot = IndexFile(kData / (GetParam() + ".tsr")).snapshot();
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
  EXPECT_EQ(text, read_text(kData / (GetParam() + ".txt")));
}

TEST_P(IndexFormat, TheSameChangesGiveTheSameBytes) {
  const TempFolder folder;
  const auto path = folder / "a.tsr";
  const std::vector<float> anchors = some_anchors(4, 2);
  IndexInfo info = some_info(anchors, 2, kPacker);
  if (GetParam() == "version1") {
    info.tail = TailLayout::padded;
    info.half_anchors = false;
  }
  write_index(path, info);
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
  EXPECT_TRUE(read_text(path) == read_text(kData / (GetParam() + ".tsr")));
}

}  // namespace
}  // namespace tessera::lattice
