#include "tessera/lattice/index_writer.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "../io/file_size_limit.h"
#include "index_test.h"
#include "support/expect_error.h"

namespace tessera::lattice {
namespace {

using IndexWriterTest = IndexTest;

TEST_F(IndexWriterTest, EqualContentGivesEqualBytes) {
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

TEST_F(IndexWriterTest, AddEraseAndUpsert) {
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

TEST_F(IndexWriterTest, ManyChangesOfAnIdInOneCommit) {
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

TEST_F(IndexWriterTest, NothingToCommitIsNoCommit) {
  create();
  const std::string before = read_text(path);
  IndexWriter writer(path, packer);
  add(writer, batch(1, {4}));
  erase(writer, {4});
  writer.commit();
  EXPECT_EQ(writer.snapshot()->generation(), 1u);
  EXPECT_EQ(read_text(path), before);
}

TEST_F(IndexWriterTest, RandomChangesAgreeWithTheModel) {
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

TEST_F(IndexWriterTest, CompactKeepsTheLivingInOneSegment) {
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

TEST_F(IndexWriterTest, AnIndexOfWhichAllWasErasedCompactsToNothing) {
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

TEST_F(IndexWriterTest, ACompactedCopyLeavesTheOriginal) {
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

TEST_F(IndexWriterTest, CodesOfNoBytes) {
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

TEST_F(IndexWriterTest, ThePlainPackerPutsVectorsOneAfterTheOther) {
  const PlainPacker plain(2);
  write_index(path, some_info(anchors, kDim, plain));
  IndexWriter writer(path, plain);
  writer.add(std::vector<int32_t>{2, 2}, std::vector<int64_t>{9, 4}, bytes_of("xyab"));
  writer.commit();
  const auto snapshot = writer.snapshot();
  EXPECT_TRUE(snapshot->parts(2)[0].blocks().empty());
  const std::span block(snapshot->parts(2)[0].tail(), 64);
  EXPECT_TRUE(std::ranges::equal(block, bytes_of("abxy" + std::string(60, '\0'))));
}

TEST_F(IndexWriterTest, OneWriterAtATime) {
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

TEST_F(IndexWriterTest, TwoWritersThatCompactInTurnLoseNothing) {
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

TEST_F(IndexWriterTest, ALinkLeadsToTheFileThatIsCompacted) {
  create();
  std::filesystem::create_symlink("a.tsr", folder / "link.tsr");
  IndexWriter writer(folder / "link.tsr", packer);
  add(writer, batch(1, range(0, 9)));
  writer.compact();
  expect_model();
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link.tsr"));
}

TEST_F(IndexWriterTest, AFileThatWasReplacedIsNotWritten) {
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

TEST_F(IndexWriterTest, AFullDiskLeavesTheOldStateAndTheChangePending) {
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

TEST_F(IndexWriterTest, WrongBatchesAreRefusedWhole) {
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

TEST_F(IndexWriterTest, APackerOfOtherBlocksIsRefused) {
  create();
  const PlainPacker other(8);
  const std::string text = "index: expected a packer of blocks of 224 bytes, got 256";
  EXPECT_EQ(error_text([&] { IndexWriter(path, other); }), text);
  const auto snapshot = IndexFile(path).snapshot();
  EXPECT_EQ(error_text([&] { write_compacted(folder / "b", *snapshot, other); }), text);
}

}  // namespace
}  // namespace tessera::lattice
