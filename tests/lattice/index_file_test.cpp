#include "tessera/lattice/index_file.h"

#include <atomic>
#include <limits>
#include <thread>

#include "index_test.h"
#include "support/expect_error.h"

namespace tessera::lattice {
namespace {

using IndexFileTest = IndexTest;

TEST_F(IndexFileTest, AnEmptyIndexKeepsWhatItIsMadeFor) {
  create();
  const auto snapshot = IndexFile(path).snapshot();
  const IndexInfo& info = snapshot->info();
  EXPECT_EQ(info.dim, kDim);
  EXPECT_EQ(info.cells(), kCells);
  EXPECT_EQ(info.metric, Metric::inner_product);
  EXPECT_EQ(info.block_bytes, 7 * 32);
  EXPECT_TRUE(std::ranges::equal(info.anchors, anchors));
  ASSERT_EQ(info.blobs.size(), 2u);
  EXPECT_TRUE(std::ranges::equal(info.blobs.at("code spec"), bytes_of("four bits")));
  EXPECT_TRUE(std::ranges::equal(info.blobs.at("transform"), bytes_of("rotation 7")));
  EXPECT_EQ(snapshot->segments(), 0);
  EXPECT_EQ(snapshot->stored(), 0);
  EXPECT_EQ(snapshot->max_id(), -1);
  EXPECT_EQ(snapshot->find(0), std::nullopt);
  for (int32_t cell = 0; cell < kCells; ++cell) EXPECT_TRUE(snapshot->parts(cell).empty());
  expect_model();
}

TEST_F(IndexFileTest, WrittenAtOnceItHasOneSegment) {
  const Batch rows = batch(1, range(0, 200));
  put(model, rows);
  write_index(path, some_info(anchors, kDim, packer), [&](int32_t cell, auto& ids, auto& blocks) {
    for (const auto& [id, stored] : model) {
      if (stored.cell != cell) continue;
      const auto i = int64_t(ids.size());
      blocks.resize(size_t(blocks_for(i + 1) * packer.block_bytes()));
      packer.pack(blocks.data() + i / 32 * packer.block_bytes(), int(i % 32), stored.vector);
      ids.push_back(id);
    }
  });
  expect_model();
  EXPECT_EQ(IndexFile(path).snapshot()->segments(), 1);
  EXPECT_EQ(IndexFile(path).snapshot()->generation(), 1u);
}

TEST_F(IndexFileTest, FindTellsWhereAnIdLives) {
  create();
  IndexWriter writer(path, packer);
  add(writer, batch(1, range(0, 500)));
  writer.commit();
  upsert(writer, batch(2, {7, 9}));
  erase(writer, {8});
  writer.commit();
  const auto snapshot = writer.snapshot();
  for (int64_t id = 0; id < 510; ++id) {
    const auto found = snapshot->find(id);
    ASSERT_EQ(found.has_value(), model.contains(id)) << id;
    if (!found) continue;
    EXPECT_EQ(found->segment, id == 7 || id == 9 ? 1 : 0);
    EXPECT_EQ(found->cell, model[id].cell);
    for (const ListPart& part : snapshot->parts(found->cell)) {
      if (part.segment() == found->segment) EXPECT_EQ(part.ids()[found->position], id);
    }
  }
  for (int32_t cell = 0; cell < kCells; ++cell) {
    size_t at = 0;
    const std::vector<int64_t> ids = snapshot->live_ids(cell);
    for (const ListPart& part : snapshot->parts(cell)) {
      for (const int64_t id : part.ids().decode()) {
        const bool is_dead = part.segment() == 0 && id >= 7 && id <= 9;
        EXPECT_EQ(ids.at(at++), is_dead ? -1 : id);
      }
    }
    EXPECT_EQ(ids.size(), at);
  }
  EXPECT_TRUE(snapshot->is_dead(0, 7));
  EXPECT_FALSE(snapshot->is_dead(1, 7));
  EXPECT_FALSE(snapshot->is_dead(0, 6));
}

TEST_F(IndexFileTest, ReadersKeepTheirSnapshotAndRefresh) {
  create();
  IndexWriter writer(path, packer);
  add(writer, batch(1, range(0, 50)));
  writer.commit();
  IndexFile reader(path);
  const auto first = reader.snapshot();
  const auto blocks = first->parts(model[0].cell)[0].blocks();
  const Content first_model = model;
  EXPECT_FALSE(reader.refresh());
  for (uint64_t i = 0; i < 20; ++i) {
    upsert(writer, batch(i + 2, range(0, 30)));
    writer.commit();
    EXPECT_TRUE(reader.refresh());
    EXPECT_EQ(content_of(*reader.snapshot(), packer), model);
  }
  writer.compact();
  add(writer, batch(99, {777}));
  writer.commit();
  EXPECT_TRUE(reader.refresh());  // to another file
  EXPECT_EQ(content_of(*reader.snapshot(), packer), model);
  EXPECT_FALSE(reader.refresh());
  // The first one is where it was, after the file is gone.
  std::filesystem::remove(path);
  EXPECT_EQ(first->parts(first_model.at(0).cell)[0].blocks().data(), blocks.data());
  EXPECT_EQ(content_of(*first, packer), first_model);
  EXPECT_EQ(error_text([&] { reader.refresh(); }),
            cat("index: cannot read '", path.native(), "': No such file or directory"));
  EXPECT_EQ(content_of(*reader.snapshot(), packer), model);
}

TEST_F(IndexFileTest, ManyReadersBesideAWriter) {
  create();
  IndexWriter writer(path, packer);
  add(writer, batch(0, range(0, 64)));
  writer.commit();
  std::atomic<bool> done{false};
  std::atomic<int> failures{0};
  IndexFile shared(path);
  std::vector<std::thread> readers;
  for (int r = 0; r < 3; ++r) {
    readers.emplace_back([&, r] {
      uint64_t last = 0;
      while (!done) {
        shared.refresh();
        const auto snapshot = r == 0 ? IndexFile(path).snapshot() : shared.snapshot();
        // Every commit replaces the 64 vectors by others of one seed: never a mixture.
        const Content content = content_of(*snapshot, packer);
        const auto& [id, stored] = *content.begin();
        bool good = false;
        for (uint64_t seed = 0; seed < 30 && !good; ++seed) {
          if (random_payload(seed, id, 7) != stored.vector) continue;
          Content expected;
          put(expected, batch(seed, range(0, 64)));
          good = content == expected;
        }
        good = good && snapshot->generation() >= last;
        failures += !good;
        last = snapshot->generation();
      }
    });
  }
  for (uint64_t seed = 1; seed < 30; ++seed) {
    upsert(writer, batch(seed, range(0, 64)));
    seed % 7 == 0 ? writer.compact() : writer.commit();
  }
  done = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(failures, 0);
  expect_model();
}

TEST_F(IndexFileTest, WhatCannotBeWrittenIsRefused) {
  const IndexInfo good = some_info(anchors, kDim, packer);
  const auto refusal = [&](auto change) {
    IndexInfo info = good;
    change(info);
    return error_text([&] { write_index(path, info); });
  };
  const std::string shape = "index: expected anchors of (cells, dim), got ";
  EXPECT_EQ(refusal([](IndexInfo& i) { i.dim = 0; }), shape + "15 values for dim 0");
  EXPECT_EQ(refusal([](IndexInfo& i) { i.dim = 4; }), shape + "15 values for dim 4");
  EXPECT_EQ(refusal([](IndexInfo& i) { i.anchors = {}; }), shape + "0 values for dim 3");
  EXPECT_EQ(refusal([](IndexInfo& i) { i.block_bytes = -1; }),
            "index: expected blocks of at least 0 bytes, got -1");
  EXPECT_EQ(refusal([](IndexInfo& i) {
              i.tail = TailLayout::registers;
              i.block_bytes = 192;
            }),
            "index: expected blocks that can be laid out as said, got 192 bytes");
  anchors[7] = std::numeric_limits<float>::infinity();
  EXPECT_EQ(refusal([](IndexInfo&) {}), "index: expected finite anchors, got inf in row 2");
  anchors[7] = 0;
  const std::string named =
      "index: expected the name of a blob to have 1 to 23 characters and not to be 'anchors', got ";
  EXPECT_EQ(refusal([](IndexInfo& i) { i.blobs["anchors"] = {}; }), named + "'anchors'");
  EXPECT_EQ(refusal([](IndexInfo& i) { i.blobs[""] = {}; }), named + "''");
  EXPECT_EQ(refusal([](IndexInfo& i) { i.blobs[std::string(24, 'x')] = {}; }),
            named + "'xxxxxxxxxxxxxxxxxxxxxxxx'");
  EXPECT_EQ(refusal([](IndexInfo& i) {
              for (int b = 0; b < 1024; ++b) i.blobs[std::to_string(b)] = {};
            }),
            "index: expected fewer than 1024 blobs, got 1026");
  EXPECT_EQ(folder.files(), 0u);
}

TEST_F(IndexFileTest, FilesThatAreNotThere) {
  EXPECT_EQ(error_text([&] { IndexFile index(path); }),
            cat("index: cannot read '", path.native(), "': No such file or directory"));
  EXPECT_EQ(error_text([&] { IndexWriter(path, packer); }),
            cat("index: cannot write '", path.native(), "': No such file or directory"));
  EXPECT_EQ(error_text([&] { IndexFile index(folder.path()); }),
            cat("index: cannot read '", folder.path().native(), "': not a regular file"));
  EXPECT_EQ(error_text([&] { IndexWriter(folder.path(), packer); }),
            cat("index: cannot write '", folder.path().native(), "': Is a directory"));
}

TEST_F(IndexFileTest, OpeningDoesNotReadTheLists) {
  const PlainPacker wide(1024);
  write_index(path, some_info(anchors, kDim, wide));
  IndexWriter writer(path, wide);
  const std::vector<int64_t> ids = range(0, 4000);
  const std::vector<int32_t> cells(ids.size(), 1);
  writer.add(cells, ids, std::vector<std::byte>(ids.size() * 1024, std::byte{1}));
  writer.commit();
  const auto row = writer.snapshot()->parts(1)[0].blocks().size();
  EXPECT_GT(row, size_t(4'000'000));
  // Damage in the middle of the list is seen when the list is, not at opening.
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(2'000'000);
  file.put('x');
  file.close();
  const auto snapshot = IndexFile(path).snapshot();
  EXPECT_EQ(snapshot->stored(), 4000);
  const std::string text =
      cat("index: '", path.native(),
          "': segment 0: the list of cell 1 is damaged: the checksum of its blocks differs");
  EXPECT_EQ(snapshot->find(77)->position, 77);  // to look up an id is not to read the blocks
  EXPECT_EQ(error_text([&] { snapshot->parts(1)[0].blocks(); }), text);
  EXPECT_EQ(error_text([&] { snapshot->parts(1)[0].blocks(); }), text);
  EXPECT_EQ(error_text([&] { snapshot->verify(); }), text);
}

}  // namespace
}  // namespace tessera::lattice
