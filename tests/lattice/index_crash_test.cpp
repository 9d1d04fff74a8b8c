// Writers that are killed, and machines that lose power: what was committed stays.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "index_support.h"

namespace tessera::lattice {
namespace {

constexpr int32_t kCells = 4, kDim = 2;
constexpr int64_t kBytes = 5;

const InterleavedPacker kPacker(kBytes);

// Change number i, the same in every process: compact, or a batch in one commit.
struct Change {
  bool compact = false;
  std::vector<int64_t> erased;
  Batch upserted;
};

Change change_of(uint64_t i) {
  Change change;
  change.compact = draw(i, 0, 10) < 3;
  std::map<int64_t, bool> ids;
  for (uint64_t k = 1; k <= 60 && !change.compact; ++k) {
    ids[int64_t(draw(i, k, 500))] = draw(i, 1000 + k, 4) == 0;
  }
  std::vector<int64_t> upserted;
  for (const auto& [id, is_erased] : ids) (is_erased ? change.erased : upserted).push_back(id);
  change.upserted = random_batch(i, upserted, kCells, kBytes);
  return change;
}

void perform(Content& content, const Change& change) {
  for (const int64_t id : change.erased) content.erase(id);
  put(content, change.upserted);
}

void perform(IndexWriter& writer, const Change& change) {
  writer.erase(change.erased);
  writer.upsert(change.upserted.cells, change.upserted.ids, change.upserted.vectors);
  change.compact ? writer.compact() : writer.commit();
}

// Makes changes from `first` on until killed, and tells the number of each when it is done.
[[noreturn]] void work(const std::filesystem::path& path, uint64_t first, int tell) {
  try {
    IndexWriter writer(path, kPacker);
    for (uint64_t i = first;; ++i) {
      perform(writer, change_of(i));
      if (::write(tell, &i, sizeof(i)) != ssize_t(sizeof(i))) ::_exit(2);
    }
  } catch (...) {
    ::_exit(1);
  }
}

// Lets a child make changes from `first` on for that long; returns how many it told of.
uint64_t run_and_kill(const std::filesystem::path& path, uint64_t first,
                      std::chrono::microseconds time) {
  int ends[2] = {};
  TESSERA_ASSERT(::pipe(ends) == 0);
  const pid_t child = ::fork();
  TESSERA_ASSERT(child >= 0);
  if (child == 0) work(path, first, ends[1]);
  ::close(ends[1]);
  std::this_thread::sleep_for(time);
  ::kill(child, SIGKILL);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status)) << "the writer failed: " << WEXITSTATUS(status);
  uint64_t done = 0, i = 0;
  while (::read(ends[0], &i, sizeof(i)) == ssize_t(sizeof(i))) EXPECT_EQ(i, first + done++);
  ::close(ends[0]);
  return done;
}

TEST(IndexCrash, TwoHundredKillsLoseNothingCommitted) {
  const TempFolder folder;
  const auto path = folder / "a.tsr";
  const std::vector<float> anchors = some_anchors(kCells, kDim);
  write_index(path, some_info(anchors, kDim, kPacker));
  Content model;
  uint64_t next = 0;
  for (uint64_t round = 0; round < 200; ++round) {
    const auto time = std::chrono::microseconds(draw(99, round, 20'000));
    const uint64_t told = run_and_kill(path, next, time);
    for (const uint64_t end = next + told; next < end; ++next) perform(model, change_of(next));
    const auto snapshot = IndexFile(path).snapshot();
    snapshot->verify();
    const Content content = content_of(*snapshot, kPacker);
    if (content != model) {  // a change may be whole before it is told of
      perform(model, change_of(next++));
      ASSERT_EQ(content, model) << "round " << round;
    }
    ASSERT_EQ(snapshot->live(), int64_t(model.size()));
  }
  EXPECT_GT(next, 50u);  // else the children had no time for anything
  // And it can still be written, also where a kill left but one copy of a record.
  IndexWriter writer(path, kPacker);
  perform(writer, change_of(next));
  perform(model, change_of(next));
  writer.compact();
  EXPECT_EQ(content_of(*IndexFile(path).snapshot(), kPacker), model);
}

// A commit that power cut short: which of its bytes reached the disk is any man's guess.
class PowerFailure : public testing::Test {
 protected:
  PowerFailure() {
    const std::vector<float> anchors = some_anchors(kCells, kDim);
    write_index(path, some_info(anchors, kDim, kPacker));
    IndexWriter writer(path, kPacker);
    Batch rows = random_batch(1, std::vector<int64_t>{1, 2, 3, 4}, kCells, kBytes);
    writer.add(rows.cells, rows.ids, rows.vectors);
    writer.commit();
    before = read_text(path);
    write_text(copy_path, before);
    before_model = content_of(*writer.snapshot(), kPacker);
    rows = random_batch(2, std::vector<int64_t>{3, 4, 5}, kCells, kBytes);
    writer.upsert(rows.cells, rows.ids, rows.vectors);
    writer.commit();
    after = read_text(path);
    after_model = content_of(*writer.snapshot(), kPacker);
    slot = int(writer.snapshot()->generation() % 2);
  }

  // The file after the commit, with the first bytes of each copy of its record only.
  std::string torn(size_t first_copy, size_t second_copy) const {
    std::string file = after;
    for (const auto& [copy, kept] : {std::pair(slot, first_copy), {slot + 2, second_copy}}) {
      const auto at = size_t(record_at(copy));
      file.replace(at + kept, 64 - kept, before.substr(at + kept, 64 - kept));
    }
    return file;
  }

  void expect(const std::string& file, const Content& model) {
    overwrite(path, file);
    ASSERT_EQ(content_of(*IndexFile(path).snapshot(), kPacker), model);
    // The next writer goes on from there.
    IndexWriter writer(path, kPacker);
    const Batch rows = random_batch(3, std::vector<int64_t>{9}, kCells, kBytes);
    writer.add(rows.cells, rows.ids, rows.vectors);
    writer.commit();
    Content more = model;
    put(more, rows);
    ASSERT_EQ(content_of(*IndexFile(path).snapshot(), kPacker), more);
    // Now each copy of the newest record can be lost alone.
    for (const int copy : {0, 1, 2, 3}) {
      std::string damaged = read_text(path);
      damaged[size_t(record_at(copy)) + 20] ^= 1;
      overwrite(copy_path, damaged);
      ASSERT_EQ(content_of(*IndexFile(copy_path).snapshot(), kPacker), more);
    }
  }

  TempFolder folder;
  std::filesystem::path path = folder / "a.tsr", copy_path = folder / "b.tsr";
  std::string before, after;
  Content before_model, after_model;
  int slot = 0;
};

TEST_F(PowerFailure, WhileTheDataIsWritten) {
  for (size_t kept = before.size(); kept <= after.size(); kept += 37) {
    std::string file = torn(0, 0).substr(0, kept);
    expect(file, before_model);
    for (size_t i = before.size(); i < kept; i += 5) file[i] = 'x';
    expect(file, before_model);
  }
}

TEST_F(PowerFailure, WhileTheRecordIsWritten) {
  size_t same = 0;  // the record's first bytes are those of the one before
  const auto at = size_t(record_at(slot));
  while (before[at + same] == after[at + same]) ++same;
  for (size_t kept = 0; kept < 64; ++kept) {
    const bool is_whole = after.substr(at + kept, 64 - kept) == before.substr(at + kept, 64 - kept);
    expect(torn(kept, 0), is_whole ? after_model : before_model);
    expect(torn(64, kept), after_model);
  }
  EXPECT_LT(same, 16u);
}

}  // namespace
}  // namespace tessera::lattice
