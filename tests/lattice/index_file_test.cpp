#include "tessera/lattice/index_file.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <limits>
#include <numeric>
#include <thread>

#include "../io/file_size_limit.h"
#include "index_support.h"
#include "support/expect_error.h"

namespace tessera::lattice {
namespace {

constexpr int32_t kCells = 5, kDim = 3;

std::vector<int64_t> range(int64_t begin, int64_t end) {
  std::vector<int64_t> ids(static_cast<size_t>(end - begin));
  std::iota(ids.begin(), ids.end(), begin);
  return ids;
}

class IndexFileTest : public testing::Test {
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

TEST_F(IndexFileTest, EqualContentGivesEqualBytes) {
  for (const char* name : {"a.tsr", "b.tsr"}) {
    write_index(folder / name, some_info(anchors, kDim, packer));
    IndexWriter writer(folder / name, packer);
    const Batch rows = batch(1, range(0, 300));
    writer.add(rows.cells, rows.ids, rows.vectors);
    writer.commit();
    writer.erase(range(3, 40));
    writer.commit();
  }
  EXPECT_EQ(read_text(folder / "a.tsr"), read_text(folder / "b.tsr"));
}

TEST_F(IndexFileTest, AddEraseAndUpsert) {
  create();
  IndexWriter writer(path, packer);
  add(writer, batch(1, range(0, 100)));
  add(writer, batch(2, range(100, 130)));
  EXPECT_EQ(IndexFile(path).snapshot()->stored(), 0);  // not committed
  writer.commit();
  expect_model();
  erase(writer, {3, 50, 129, 1'000'000});
  writer.commit();
  expect_model();
  add(writer, batch(3, {3, 200}));  // 3 lives again
  upsert(writer, batch(4, {5, 50, 201}));
  writer.commit();
  expect_model();
  EXPECT_EQ(writer.snapshot()->segments(), 3);
  EXPECT_EQ(writer.snapshot()->generation(), 4u);
  EXPECT_EQ(writer.snapshot()->stored(), 135);
  erase(writer, range(0, 300));
  writer.commit();
  expect_model();
}

TEST_F(IndexFileTest, ManyChangesOfAnIdInOneCommit) {
  create();
  IndexWriter writer(path, packer);
  add(writer, batch(1, {1, 2, 3}));
  erase(writer, {2});
  upsert(writer, batch(2, {3}));
  writer.commit();
  expect_model();
  erase(writer, {1});
  add(writer, batch(3, {1, 2}));
  upsert(writer, batch(4, {2}));
  upsert(writer, batch(5, {3}));
  erase(writer, {3});
  writer.commit();
  expect_model();
  EXPECT_EQ(model.size(), 2u);
}

TEST_F(IndexFileTest, NothingToCommitIsNoCommit) {
  create();
  const std::string before = read_text(path);
  IndexWriter writer(path, packer);
  add(writer, batch(1, {4}));
  erase(writer, {4});
  writer.commit();
  EXPECT_EQ(writer.snapshot()->generation(), 1u);
  EXPECT_EQ(read_text(path), before);
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
  EXPECT_TRUE(snapshot->is_dead(0, 7));
  EXPECT_FALSE(snapshot->is_dead(1, 7));
  EXPECT_FALSE(snapshot->is_dead(0, 6));
}

TEST_F(IndexFileTest, RandomChangesAgreeWithTheModel) {
  create();
  IndexWriter writer(path, packer);
  IndexFile reader(path);
  for (uint64_t step = 0; step < 120; ++step) {
    std::vector<int64_t> ids;
    for (uint64_t i = 0; i <= draw(step, 0, 40); ++i) {
      const auto id = int64_t(draw(step, i + 1, 300));
      if (std::ranges::find(ids, id) == ids.end()) ids.push_back(id);
    }
    switch (draw(step, 100, 4)) {
      case 0: erase(writer, ids); break;
      case 1: upsert(writer, batch(step, ids)); break;
      case 2:
        std::erase_if(ids, [&](int64_t id) { return model.contains(id); });
        add(writer, batch(step, ids));
        break;
      default:
        draw(step, 101, 5) == 0 ? writer.compact() : writer.commit();
        expect_model();
        reader.refresh();
        EXPECT_EQ(content_of(*reader.snapshot(), packer), model);
    }
  }
}

TEST_F(IndexFileTest, CompactKeepsTheLivingInOneSegment) {
  create();
  IndexWriter writer(path, packer);
  for (int64_t i = 0; i < 10; ++i) {
    add(writer, batch(1, range(100 * i, 100 * i + 100)));
    erase(writer, range(50 * i, 50 * i + 20));
    writer.commit();
  }
  const auto before = std::filesystem::file_size(path);
  add(writer, batch(9, {5000}));
  writer.compact();
  expect_model();
  EXPECT_LT(std::filesystem::file_size(path), before);
  const auto snapshot = writer.snapshot();
  EXPECT_EQ(snapshot->segments(), 1);
  EXPECT_EQ(snapshot->generation(), 13u);  // as if each were a commit
  EXPECT_FALSE(snapshot->has_dead());
  EXPECT_EQ(snapshot->stored(), int64_t(model.size()));
  EXPECT_EQ(folder.files(), 1u);
  const std::string once = read_text(path);
  add(writer, batch(10, {6000}));  // it goes on writing to the new file
  writer.commit();
  expect_model();
  erase(writer, {6000});
  writer.compact();
  expect_model();
  // But for the generation, compacting the same content gives the same file.
  EXPECT_EQ(read_text(path).substr(size_t(kFixedBytes)), once.substr(size_t(kFixedBytes)));
}

TEST_F(IndexFileTest, AnIndexOfWhichAllWasErasedCompactsToNothing) {
  create();
  const auto empty = std::filesystem::file_size(path);
  IndexWriter writer(path, packer);
  add(writer, batch(1, range(0, 100)));
  writer.commit();
  erase(writer, range(0, 100));
  writer.compact();
  expect_model();
  EXPECT_EQ(std::filesystem::file_size(path), empty);
}

TEST_F(IndexFileTest, ACompactedCopyLeavesTheOriginal) {
  create();
  IndexWriter writer(path, packer);
  add(writer, batch(1, range(0, 100)));
  writer.commit();
  erase(writer, range(0, 10));
  writer.commit();
  write_compacted(folder / "b.tsr", *writer.snapshot(), packer);
  expect_model();
  path = folder / "b.tsr";
  expect_model();
  EXPECT_EQ(IndexFile(path).snapshot()->segments(), 1);
}

TEST_F(IndexFileTest, CodesOfNoBytes) {
  const PlainPacker none(0);
  write_index(path, some_info(anchors, kDim, none));
  IndexWriter writer(path, none);
  writer.add(std::vector<int32_t>{1, 1, 4}, std::vector<int64_t>{8, 3, 5}, {});
  writer.commit();
  writer.erase(std::vector<int64_t>{3});
  writer.compact();
  const Content expected = {{5, {4, {}}}, {8, {1, {}}}};
  EXPECT_EQ(content_of(*IndexFile(path).snapshot(), none), expected);
}

TEST_F(IndexFileTest, ThePlainPackerPutsVectorsOneAfterTheOther) {
  const PlainPacker plain(2);
  write_index(path, some_info(anchors, kDim, plain));
  IndexWriter writer(path, plain);
  writer.add(std::vector<int32_t>{2, 2}, std::vector<int64_t>{9, 4}, bytes_of("xyab"));
  writer.commit();
  const auto snapshot = writer.snapshot();
  const auto blocks = snapshot->parts(2)[0].blocks();
  EXPECT_TRUE(std::ranges::equal(blocks, bytes_of("abxy" + std::string(60, '\0'))));
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

TEST_F(IndexFileTest, OneWriterAtATime) {
  create();
  auto first = std::make_unique<IndexWriter>(path, packer);
  EXPECT_EQ(error_text([&] { IndexWriter(path, packer, IfBusy::fail); }),
            cat("index: '", path.native(), "' is being written by another"));
  add(*first, batch(1, {1}));
  first->compact();  // the lock is now on the new file
  EXPECT_THROW(IndexWriter(path, packer, IfBusy::fail), Error);
  // One that waits gets the file that is there then, not the one it waited for.
  std::thread waiting([&] {
    IndexWriter second(path, packer);
    const Batch rows = batch(2, {2});
    second.add(rows.cells, rows.ids, rows.vectors);
    second.commit();
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  add(*first, batch(1, {3}));
  first->commit();
  first.reset();
  waiting.join();
  put(model, batch(2, {2}));
  expect_model();
}

TEST_F(IndexFileTest, TwoWritersThatCompactInTurnLoseNothing) {
  create();
  std::vector<std::thread> writers;
  for (int64_t w = 0; w < 2; ++w) {
    writers.emplace_back([&, w] {
      for (int64_t i = 0; i < 15; ++i) {
        IndexWriter writer(path, packer);
        const Batch rows = batch(5, {100 * w + i});
        writer.add(rows.cells, rows.ids, rows.vectors);
        i % 3 == 2 ? writer.compact() : writer.commit();
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  put(model, batch(5, range(0, 15)));
  put(model, batch(5, range(100, 115)));
  expect_model();
}

TEST_F(IndexFileTest, ALinkLeadsToTheFileThatIsCompacted) {
  create();
  std::filesystem::create_symlink("a.tsr", folder / "link.tsr");
  IndexWriter writer(folder / "link.tsr", packer);
  add(writer, batch(1, range(0, 9)));
  writer.compact();
  expect_model();
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link.tsr"));
}

TEST_F(IndexFileTest, AFileThatWasReplacedIsNotWritten) {
  create();
  IndexWriter writer(path, packer);
  add(writer, batch(1, {1}));
  std::filesystem::rename(path, folder / "b.tsr");
  EXPECT_EQ(error_text([&] { writer.commit(); }),
            cat("index: '", path.native(), "' was moved or replaced while it was being written"));
  std::filesystem::rename(folder / "b.tsr", path);
  writer.commit();
  expect_model();
}

TEST_F(IndexFileTest, AFullDiskLeavesTheOldStateAndTheChangePending) {
  create();
  IndexWriter writer(path, packer);
  add(writer, batch(1, range(0, 100)));
  writer.commit();
  const std::string before = read_text(path);
  const Content committed = model;
  add(writer, batch(2, range(100, 2000)));
  std::string commit_text, compact_text;
  {
    const FileSizeLimit limit(before.size() + 1000);
    commit_text = error_text([&] { writer.commit(); });
  }
  EXPECT_EQ(commit_text, cat("index: cannot write '", path.native(), "': File too large"));
  EXPECT_EQ(read_text(path), before);
  EXPECT_EQ(content_of(*IndexFile(path).snapshot(), packer), committed);
  writer.commit();
  expect_model();
  {
    const FileSizeLimit limit(1000);
    compact_text = error_text([&] { writer.compact(); });
  }
  EXPECT_EQ(compact_text, cat("write: cannot write '", path.native(), "': File too large"));
  expect_model();
  EXPECT_EQ(folder.files(), 1u);
  add(writer, batch(3, {5000}));
  writer.commit();
  expect_model();
}

TEST_F(IndexFileTest, WrongBatchesAreRefusedWhole) {
  create();
  IndexWriter writer(path, packer);
  add(writer, batch(1, {1, 2}));
  writer.commit();
  add(writer, batch(1, {10}));
  const std::vector<std::byte> two(14), one(7);
  using Cells = std::vector<int32_t>;
  using Ids = std::vector<int64_t>;
  const auto refusal = [&](const Cells& cells, const Ids& ids, const std::vector<std::byte>& data) {
    return error_text([&] { writer.add(cells, ids, data); });
  };
  EXPECT_EQ(refusal({0}, {5, 6}, two),
            "index: add: expected a cell and 7 bytes for each of 2 ids, got 1 cells and 14 bytes");
  EXPECT_EQ(refusal({0, 0}, {5, 6}, one),
            "index: add: expected a cell and 7 bytes for each of 2 ids, got 2 cells and 7 bytes");
  EXPECT_EQ(refusal({0, 5}, {5, 6}, two), "index: add: expected cells from 0 to 4, got 5");
  EXPECT_EQ(refusal({0, -1}, {5, 6}, two), "index: add: expected cells from 0 to 4, got -1");
  EXPECT_EQ(refusal({0, 1}, {5, -6}, two), "index: add: expected ids of at least 0, got -6");
  EXPECT_EQ(refusal({0, 1}, {5, 5}, two), "index: add: id 5 is there twice");
  EXPECT_EQ(refusal({0, 1}, {5, 2}, two), "index: add: id 2 is in the index already");
  EXPECT_EQ(refusal({0, 1}, {5, 10}, two), "index: add: id 10 is in the index already");
  EXPECT_EQ(error_text([&] { writer.upsert(Cells{9}, Ids{1}, one); }),
            "index: upsert: expected cells from 0 to 4, got 9");
  EXPECT_EQ(error_text([&] {
              writer.erase(Ids{1, -1});
            }),
            "index: erase: expected ids of at least 0, got -1");
  writer.commit();
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

TEST_F(IndexFileTest, APackerOfOtherBlocksIsRefused) {
  create();
  const PlainPacker other(8);
  const std::string text = "index: expected a packer of blocks of 224 bytes, got 256";
  EXPECT_EQ(error_text([&] { IndexWriter(path, other); }), text);
  const auto snapshot = IndexFile(path).snapshot();
  EXPECT_EQ(error_text([&] { write_compacted(folder / "b", *snapshot, other); }), text);
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
  const std::string text = cat("index: '", path.native(),
                               "': segment 0: the list of cell 1 is damaged: its checksum differs");
  EXPECT_EQ(error_text([&] { snapshot->parts(1)[0].blocks(); }), text);
  EXPECT_EQ(error_text([&] { snapshot->parts(1)[0].ids(); }), text);
  EXPECT_EQ(error_text([&] { snapshot->verify(); }), text);
}

}  // namespace
}  // namespace tessera::lattice
