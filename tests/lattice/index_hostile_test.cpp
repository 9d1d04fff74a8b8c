// Index files that are damaged or lie: refused with a sentence, or harmless.
#include <fcntl.h>

#include <cstddef>

#include "index_editor.h"
#include "index_support.h"
#include "support/expect_error.h"
#include "support/random_source.h"

namespace tessera::lattice {
namespace {

constexpr int32_t kCells = 3, kDim = 2;
const PlainPacker kPacker(2);

struct Read {
  Content content;
  std::vector<float> anchors;
  std::map<std::string, std::string> blobs;
  int32_t dim;
  Metric metric;
  bool operator==(const Read&) const = default;
};

class IndexHostile : public testing::Test {
 protected:
  IndexHostile() {
    const std::vector<float> anchors = some_anchors(kCells, kDim);
    write_index(path, some_info(anchors, kDim, kPacker));
    IndexWriter writer(path, kPacker);
    change(writer, 1, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
    change(writer, 2, {4, 5, 20});
    good = read_text(path);
    before = read_all();
  }

  void change(IndexWriter& writer, uint64_t seed, const std::vector<int64_t>& ids) {
    const Batch rows = random_batch(seed, ids, kCells, 2);
    writer.upsert(rows.cells, rows.ids, rows.vectors);
    writer.erase(std::vector<int64_t>{ids[1]});
    writer.commit();
  }

  Read read_all() const {
    const auto snapshot = IndexFile(path).snapshot();
    snapshot->verify();
    const IndexInfo& info = snapshot->info();
    Read read = {content_of(*snapshot, kPacker),
                 {info.anchors.begin(), info.anchors.end()},
                 {},
                 info.dim,
                 info.metric};
    for (const auto& [name, data] : info.blobs) {
      read.blobs[name] = {reinterpret_cast<const char*>(data.data()), data.size()};
    }
    return read;
  }

  // True if the file reads as before, false if it is refused; else the test fails.
  bool is_harmless(const std::string& file) {
    overwrite(path, file);
    try {
      const Read read = read_all();
      EXPECT_TRUE(read == before) << "it is accepted and reads differently";
      return true;
    } catch (const Error&) {
      return false;
    }
  }

  // What is said of the good file after a change; its checksums are right unless `sealed` is false.
  template <class F>
  std::string refusal(F&& f, bool sealed = true) {
    Editor file(good, kPacker.block_bytes());
    f(file);
    if (sealed) file.seal();
    overwrite(path, file.bytes());
    const std::string text = error_text([&] { read_all(); });
    const std::string prefix = cat("index: '", path.native(), "': ");
    EXPECT_TRUE(text.starts_with(prefix)) << text;
    return text.substr(std::min(text.size(), prefix.size()));
  }

  TempFolder folder;
  std::filesystem::path path = folder / "a.tsr";
  std::string good;
  Read before;
};

TEST_F(IndexHostile, TheEditorSealsAGoodFileAsItWas) {
  Editor file(good, kPacker.block_bytes());
  file.set_record(file.record());
  const std::string expected = file.bytes();
  file.seal();
  EXPECT_EQ(file.bytes(), expected);
  EXPECT_TRUE(is_harmless(expected));
  EXPECT_EQ(before.content.size(), 11u);
}

TEST_F(IndexHostile, EveryDamagedByteIsRefusedOrHarmless) {
  size_t harmless = 0;
  for (size_t i = 0; i < good.size(); ++i) {
    for (const int flip : {0x01, 0x80, 0xff}) {
      std::string file = good;
      file[i] = char(file[i] ^ flip);
      harmless += is_harmless(file);
      ASSERT_FALSE(testing::Test::HasFailure()) << "byte " << i << " ^ " << flip;
    }
  }
  // The padding of five sectors, all of any one commit record, and the padding of what is aligned.
  EXPECT_GE(harmless, 3 * 5 * (512u - 64));
  EXPECT_LT(harmless, 3 * (2560 + 700u));
}

TEST_F(IndexHostile, EveryTruncationIsRefused) {
  for (size_t length = 0; length < good.size(); ++length) {
    EXPECT_FALSE(is_harmless(good.substr(0, length))) << length;
  }
  EXPECT_TRUE(is_harmless(good + "what a killed writer left"));
}

TEST_F(IndexHostile, DamageInManyPlaces) {
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    std::string file = good;
    for (uint64_t i = 0; i <= draw(seed, 0, 20); ++i) {
      file[draw(seed, 2 * i + 1, file.size())] = char(draw(seed, 2 * i + 2, 256));
    }
    is_harmless(file);
    ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed;
  }
}

// Lies with the right checksums: whatever is accepted can be read and compacted. Sanitizers watch.
TEST_F(IndexHostile, SealedLiesNeverCrash) {
  const int64_t values[] = {0,
                            1,
                            2,
                            63,
                            64,
                            112,
                            255,
                            2560,
                            int64_t(good.size()),
                            -1,
                            -64,
                            int64_t(1) << 31,
                            int64_t(1) << 40,
                            INT64_MAX,
                            INT64_MIN,
                            INT64_MAX - 63};
  const Editor original(good, kPacker.block_bytes());
  std::vector<int64_t> starts = {0, kFixedBytes, kFixedBytes + 48, record_at(0)};
  for (const int back : {0, 1}) {
    const auto footer = original.get<SegmentFooter>(original.footer_at(back));
    starts.insert(starts.end(), {original.footer_at(back), original.footer_at(back) + 48,
                                 footer.rows_at, footer.dead_at, footer.begin, footer.begin + 64});
  }
  const auto [first, end] = seed_range(4000);
  uint64_t accepted = 0;
  for (uint64_t seed = first; seed < end; ++seed) {
    Editor file(good, kPacker.block_bytes());
    file.set_record(file.record());
    for (uint64_t i = 0; i <= draw(seed, 0, 2); ++i) {
      const int64_t start = starts[draw(seed, 10 * i + 1, starts.size())];
      const auto at =
          std::min(start + 4 * int64_t(draw(seed, 10 * i + 2, 16)), int64_t(good.size()) - 8);
      const int64_t value = draw(seed, 10 * i + 3, 3) == 0
                                ? file.get<int64_t>(at) ^ (int64_t(1) << draw(seed, 10 * i + 4, 64))
                                : values[draw(seed, 10 * i + 5, std::size(values))];
      draw(seed, 10 * i + 6, 2) ? file.set(at, value) : file.set(at, int32_t(value));
    }
    // All records, so that the lie is not in an old one.
    const auto lie = file.get<CommitRecord>(record_at(0));
    file.set_record(lie);
    file.seal();
    overwrite(path, file.bytes());
    try {
      const auto snapshot = IndexFile(path).snapshot();
      for (int64_t id = 0; id < 22; ++id) snapshot->find(id);
      snapshot->live();
      if (snapshot->info().block_bytes == kPacker.block_bytes() && snapshot->info().cells() < 99) {
        for (int32_t cell = 0; cell < snapshot->info().cells(); ++cell) {
          for (const ListPart& part : snapshot->parts(cell)) part.ids().decode();
        }
        if (seed % 4 == 0) write_compacted(folder / "b.tsr", *snapshot, kPacker);
      }
      snapshot->verify();
      ++accepted;
    } catch (const Error&) {
    }
  }
  EXPECT_GT(accepted,
            (end - first) / 40);  // zeros over zeros, other generations, other anchors, ...
  EXPECT_LT(accepted, (end - first) * 3 / 4);
}

TEST_F(IndexHostile, TheHead) {
  const auto preamble = [&](auto f, bool sealed = true) {
    return refusal([&](Editor& e) { e.change<Preamble>(0, f); }, sealed);
  };
  EXPECT_EQ(preamble([](Preamble& p) { p.magic[0] = 'X'; }),
            "expected an index file, got other leading bytes");
  EXPECT_EQ(preamble([](Preamble& p) { p.version = 4; }),
            "expected version 1 to 3 of the format, got 4");
  const std::string layout = "expected lists and anchors of a known layout, got ";
  EXPECT_EQ(preamble([](Preamble& p) { p.version = 1; }),
            layout + "1 and 1 with blocks of 64 bytes");
  EXPECT_EQ(preamble([](Preamble& p) { p.tail = 3; }), layout + "3 and 1 with blocks of 64 bytes");
  EXPECT_EQ(preamble([](Preamble& p) { p.tail = 2; }), layout + "2 and 1 with blocks of 64 bytes");
  EXPECT_EQ(preamble([](Preamble& p) { p.half_anchors = 2; }),
            layout + "1 and 2 with blocks of 64 bytes");
  EXPECT_EQ(preamble([](Preamble& p) { p.dim = 3; }, false), "its first 64 bytes are damaged");
  EXPECT_EQ(preamble([](Preamble& p) { p.metric = 3; }),
            "expected dim and cells of at least 1 and a known metric, got dim 2, cells 3, metric "
            "3, blocks of 64 bytes");
  EXPECT_EQ(preamble([](Preamble& p) { p.dim = 3; }),
            "expected 3 anchors of 3 dimensions, got 6 values");
  EXPECT_EQ(preamble([](Preamble& p) { p.sections = 100'000; }),
            "its section table does not fit the file");
  EXPECT_EQ(preamble([](Preamble& p) { p.head_end = INT64_MAX; }),
            "its section table does not fit the file");
  const auto section = [&](int row, auto f, bool sealed = true) {
    const int64_t at = kFixedBytes + row * int64_t(sizeof(SectionRow));
    return refusal([&](Editor& e) { e.change<SectionRow>(at, f); }, sealed);
  };
  EXPECT_EQ(section(
                0, [](SectionRow& s) { s.at += 64; }, false),
            "its section table is damaged: the checksum differs");
  EXPECT_EQ(section(1, [](SectionRow& s) { s.bytes = INT64_MAX; }),
            "section 'code spec' lies outside of the head");
  EXPECT_EQ(section(1, [](SectionRow& s) { s.at += 4; }),
            "section 'code spec' lies outside of the head");
  EXPECT_EQ(section(2, [](SectionRow& s) { std::strcpy(s.name, "code spec"); }),
            "section 'code spec' is there twice");
  const int64_t anchors_at = Editor(good, 0).get<SectionRow>(kFixedBytes).at;
  EXPECT_EQ(refusal([&](Editor& e) { e.set(anchors_at, 1.0f); }, false),
            "section 'anchors' is damaged: the checksum differs");
}

TEST_F(IndexHostile, TheCommitRecords) {
  const auto record = [&](auto f) {
    return refusal([&](Editor& e) {
      CommitRecord changed = e.record();
      f(changed);
      e.set_record(changed);
    });
  };
  EXPECT_EQ(refusal(
                [](Editor& e) {
                  for (const int slot : {1, 3}) e.set(record_at(slot) + 16, int64_t(7));
                },
                false),
            "both copies of a commit record are damaged");
  EXPECT_EQ(refusal([](Editor& e) { e = Editor(e.bytes().substr(0, 2000), 0); }, false),
            "expected at least 2560 bytes, got 2000");
  const Descriptor unreadable(::open(folder.path().c_str(), O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(error_text([&] { read_record(unreadable, "x"); }),
            "index: x: cannot be read: Is a directory");
  EXPECT_EQ(record([](CommitRecord& r) { r.length = 100; }),
            "its commit record speaks of 100 bytes");
  EXPECT_EQ(record([](CommitRecord& r) { r.length = 2560; }),
            "its section table does not fit the file");
  EXPECT_EQ(record([](CommitRecord& r) { r.length += 1; }),
            cat("expected ", good.size() + 1, " bytes, got ", good.size(), ": it is cut short"));
  EXPECT_EQ(record([](CommitRecord& r) { r.segments = 0xffffffff; }),
            "its commit record speaks of 4294967295 segments");
  EXPECT_EQ(record([](CommitRecord& r) { r.segments = 0; }),
            "its commit record speaks of 0 segments");
  EXPECT_EQ(record([](CommitRecord& r) { r.footer = INT64_MAX; }),
            cat("segment 1: its footer is said to be at byte ", INT64_MAX,
                ", outside of the file's part"));
}

TEST_F(IndexHostile, TheSegments) {
  const auto footer = [&](auto f, bool sealed = true) {
    return refusal([&](Editor& e) { e.change<SegmentFooter>(e.footer_at(), f); }, sealed);
  };
  const std::string outside = "segment 1: the parts that its footer names lie outside of it";
  EXPECT_EQ(footer([](SegmentFooter& f) { f.vectors = 3; }, false),
            cat("segment 1: its footer at byte ", Editor(good, 0).footer_at(), " is damaged"));
  EXPECT_EQ(footer([](SegmentFooter& f) { f.begin += 8; }), outside);
  EXPECT_EQ(footer([](SegmentFooter& f) { f.begin = 64; }), outside);
  EXPECT_EQ(footer([](SegmentFooter& f) { f.rows = INT64_MAX; }), outside);
  EXPECT_EQ(footer([](SegmentFooter& f) { f.dead_bytes = INT64_MAX; }), outside);
  EXPECT_EQ(footer([](SegmentFooter& f) { f.previous = 0; }), outside);
  EXPECT_EQ(footer([](SegmentFooter& f) { f.vectors = 77; }),
            "segment 1: expected 77 vectors, got lists of 2");
  EXPECT_EQ(footer([](SegmentFooter& f) { f.dead = 99; }),
            "segment 1: deleted ids: its ids are "
            "cut short");
  EXPECT_EQ(footer([](SegmentFooter& f) { f.min_id = 1; }),
            "segment 1: expected ids from 1 to 20, got 4 to 20");
  EXPECT_EQ(
      refusal([](Editor& e) { e.change<ListRow>(e.row_at(0), [](ListRow& r) { ++r.count; }); },
              false),
      "segment 1: its directory is damaged: the checksum differs");
  EXPECT_EQ(
      refusal([](Editor& e) { e.set(e.get<SegmentFooter>(e.footer_at()).dead_at, int64_t(3)); },
              false),
      "segment 1: its deleted ids are damaged: the checksum differs");
}

TEST_F(IndexHostile, TheLists) {
  const auto row = [&](auto f) {
    return refusal([&](Editor& e) { e.change<ListRow>(e.row_at(0, 1), f); });
  };
  EXPECT_EQ(row([](ListRow& r) { r.cell = 3; }),
            "segment 0: expected cells in order and below 3, got 3 after -1");
  EXPECT_EQ(row([](ListRow& r) { r.cell = 1; }),
            "segment 0: expected cells in order and below 3, got 1 after 1");
  const std::string place = "segment 0: the list of cell 0 does not lie where its row says";
  EXPECT_EQ(row([](ListRow& r) { r.blocks_at += 32; }), place);
  EXPECT_EQ(row([](ListRow& r) { r.blocks_at = INT64_MAX - 63; }), place);
  EXPECT_EQ(row([](ListRow& r) { r.id_bytes = INT64_MAX; }), place);
  EXPECT_EQ(row([](ListRow& r) { r.count = 0; }), place);
  EXPECT_EQ(row([](ListRow& r) { r.count = 0xffffffff; }), place);
  EXPECT_EQ(row([](ListRow& r) { r.id_bytes = 4; }),
            "segment 0: the list of cell 0 is damaged: its ids are cut short");
  EXPECT_EQ(row([](ListRow& r) { r.ids_at = 64; }),
            "segment 0: its ids do not lie where its first row says");
  const std::string damaged = "segment 0: the list of cell 0 is damaged: the checksum of its ";
  EXPECT_EQ(refusal([](Editor& e) { e.set(e.get<ListRow>(e.row_at(0, 1)).blocks_at, 'x'); }, false),
            damaged + "blocks differs");
  EXPECT_EQ(refusal([](Editor& e) { e.set(e.get<ListRow>(e.row_at(0, 1)).ids_at, 'x'); }, false),
            damaged + "ids differs");
}

// Two lists that hold the same id: each is sound, but not the index.
TEST_F(IndexHostile, IdsThatLiveTwice) {
  const PlainPacker none(0);
  const auto write = [&](const std::vector<std::vector<int64_t>>& lists) {
    write_index(path, some_info(some_anchors(kCells, kDim), kDim, none),
                [&](int32_t cell, std::vector<int64_t>& ids, std::vector<std::byte>&) {
                  if (size_t(cell) < lists.size()) ids = lists[size_t(cell)];
                });
  };
  const std::string name = cat("index: '", path.native(), "': ");
  write({{1, 2}, {2, 3}});
  EXPECT_EQ(error_text([&] { IndexFile(path).snapshot()->verify(); }),
            name + "segment 0: id 2 is in two lists");
  write({{1, 2}});
  {
    IndexWriter writer(path, none);
    writer.upsert(std::vector<int32_t>{0, 1}, std::vector<int64_t>{2, 5}, {});
    writer.commit();
  }
  Editor file(read_text(path), 0);
  file.change<SegmentFooter>(file.footer_at(), [](SegmentFooter& f) { f.dead = f.dead_bytes = 0; });
  file.seal();
  overwrite(path, file.bytes());
  EXPECT_EQ(error_text([&] { IndexFile(path).snapshot()->verify(); }),
            name + "id 2 is in two segments");
  EXPECT_EQ(
      error_text([&] { write_compacted(folder / "b.tsr", *IndexFile(path).snapshot(), none); }),
      "index: id 2 lives twice in cell 0");
}

TEST_F(IndexHostile, AFileOverwrittenInPlaceIsNoticed) {
  IndexFile reader(path);
  const auto snapshot = reader.snapshot();
  {
    const std::vector<float> anchors = some_anchors(kCells, kDim);
    write_index(folder / "b.tsr", some_info(anchors, kDim, kPacker));
    IndexWriter writer(folder / "b.tsr", kPacker);
    for (const uint64_t seed : {7, 8, 9, 10}) change(writer, seed, {0, 1, 2, 3, 4, 5, 6, 7, 20});
  }
  // Not shorter: the bytes are replaced under the reader's map.
  overwrite(path, read_text(folder / "b.tsr"));
  const std::string text = error_text([&] { reader.refresh(); });
  EXPECT_NE(text.find("its segments are not those that were read before"), std::string::npos)
      << text;
  EXPECT_EQ(reader.snapshot(), snapshot);
}

}  // namespace
}  // namespace tessera::lattice
