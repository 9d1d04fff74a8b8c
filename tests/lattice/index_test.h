// An index file in a folder of its own, beside the model of what it must hold.
#pragma once

#include <numeric>

#include "index_support.h"

namespace tessera::lattice {

inline constexpr int32_t kCells = 5, kDim = 3;

inline std::vector<int64_t> range(int64_t begin, int64_t end) {
  std::vector<int64_t> ids(static_cast<size_t>(end - begin));
  std::iota(ids.begin(), ids.end(), begin);
  return ids;
}

class IndexTest : public testing::Test {
 protected:
  void create() { write_index(path, some_info(anchors, kDim, packer)); }
  Batch batch(uint64_t seed, const std::vector<int64_t>& ids) const {
    return random_batch(seed, ids, kCells, packer.vector_bytes());
  }
  void add(IndexWriter& writer, const Batch& rows) {
    writer.add(rows.cells, rows.ids, rows.vectors);
    put(model, rows);
  }
  void upsert(IndexWriter& writer, const Batch& rows) {
    writer.upsert(rows.cells, rows.ids, rows.vectors);
    put(model, rows);
  }
  void erase(IndexWriter& writer, const std::vector<int64_t>& ids) {
    writer.erase(ids);
    for (const int64_t id : ids) model.erase(id);
  }
  // The file, opened now, holds what the model does.
  void expect_model() {
    const auto snapshot = IndexFile(path).snapshot();
    EXPECT_EQ(content_of(*snapshot, packer), model);
    EXPECT_EQ(snapshot->live(), int64_t(model.size()));
    EXPECT_EQ(snapshot->verify().live, int64_t(model.size()));
    EXPECT_EQ(snapshot->bytes(), int64_t(std::filesystem::file_size(path)));
  }

  TempFolder folder;
  std::filesystem::path path = folder / "a.tsr";
  InterleavedPacker packer{7};
  std::vector<float> anchors = some_anchors(kCells, kDim);
  Content model;
};

}  // namespace tessera::lattice
