#include "tessera/lattice/index_writer.h"

#include <algorithm>
#include <cerrno>
#include <unordered_map>
#include <unordered_set>

#include "tessera/lattice/index_file.h"
#include "tessera/lattice/index_replace.h"
#include "tessera/lattice/segment_writer.h"

namespace tessera::lattice {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kDoing = "index: cannot write";

struct Added {
  int32_t cell;
  int64_t id;
  size_t row;  // of the pending vectors
};

void sync(const Descriptor& file, const fs::path& path) {
  if (::fdatasync(file.get()) != 0) fail_system(kDoing, path, errno);
}

// A link stays one: what replaces the index must take the place of the file it leads to.
fs::path behind_links(const fs::path& path) {
  std::error_code code;
  return fs::is_symlink(path, code) ? fs::canonical(path, code) : path;
}

Descriptor lock_existing(const fs::path& path, IfBusy if_busy) {
  Descriptor file = lock_index(path, if_busy);
  if (!file.valid()) fail_system(kDoing, path, ENOENT);
  return file;
}

}  // namespace

struct IndexWriter::State {
  State(const fs::path& at, const BlockPacker& with, IfBusy if_busy)
      : path(behind_links(at)), packer(with), file(lock_existing(path, if_busy)), index(path) {
    const int64_t expected = index.snapshot()->info().block_bytes;
    if (packer.block_bytes() != expected) {
      fail("index: expected a packer of blocks of ", expected, " bytes, got ",
           packer.block_bytes());
    }
    settle();
  }

  // A writer that was killed may have left its record in one copy only.
  void settle() {
    record = read_record(file, "'" + path.native() + "'");
    write_record(file, record, 1, path);
  }

  void check_batch(std::string_view op, std::span<const int32_t> cells,
                   std::span<const int64_t> ids, std::span<const std::byte> batch) const {
    const int32_t limit = index.snapshot()->info().cells();
    if (cells.size() != ids.size() || batch.size() != ids.size() * size_t(packer.vector_bytes())) {
      fail("index: ", op, ": expected a cell and ", packer.vector_bytes(), " bytes for each of ",
           ids.size(), " ids, got ", cells.size(), " cells and ", batch.size(), " bytes");
    }
    for (const int32_t cell : cells) {
      if (cell < 0 || cell >= limit) {
        fail("index: ", op, ": expected cells from 0 to ", limit - 1, ", got ", cell);
      }
    }
    check_ids(op, ids);
    std::vector<int64_t> sorted(ids.begin(), ids.end());
    std::ranges::sort(sorted);
    const auto twice = std::ranges::adjacent_find(sorted);
    if (twice != sorted.end()) fail("index: ", op, ": id ", *twice, " is there twice");
  }

  static void check_ids(std::string_view op, std::span<const int64_t> ids) {
    for (const int64_t id : ids) {
      if (id < 0) fail("index: ", op, ": expected ids of at least 0, got ", id);
    }
  }

  bool lives(int64_t id) const {
    if (added.contains(id)) return true;
    const auto snapshot = index.snapshot();
    return id <= snapshot->max_id() && !dead.contains(id) && snapshot->find(id).has_value();
  }

  void put(std::span<const int32_t> cells, std::span<const int64_t> ids,
           std::span<const std::byte> batch) {
    size_t row = rows;
    vectors.insert(vectors.end(), batch.begin(), batch.end());
    rows += ids.size();
    for (size_t i = 0; i < ids.size(); ++i) added[ids[i]] = {cells[i], ids[i], row++};
  }

  void kill(std::span<const int64_t> ids) {
    const int64_t max_id = index.snapshot()->max_id();
    for (const int64_t id : ids) {
      added.erase(id);
      if (id <= max_id) dead.insert(id);
    }
  }

  void clear() {
    added.clear();
    dead.clear();
    vectors.clear();
    rows = 0;
  }

  // The pending vectors, by cell and id.
  std::vector<Added> in_order() const {
    std::vector<Added> order;
    for (const auto& [id, one] : added) order.push_back(one);
    std::ranges::sort(order, [](const Added& a, const Added& b) {
      return a.cell != b.cell ? a.cell < b.cell : a.id < b.id;
    });
    return order;
  }

  void put_list(SegmentWriter& segment, std::span<const Added> list) const {
    const auto width = size_t(packer.vector_bytes());
    std::vector<int64_t> ids;
    std::vector<std::byte> blocks(size_t(blocks_for(int64_t(list.size())) * packer.block_bytes()));
    for (const Added& one : list) {
      const auto i = int64_t(ids.size());
      ids.push_back(one.id);
      packer.pack(blocks.data() + i / kBlockVectors * packer.block_bytes(), int(i % kBlockVectors),
                  std::span(vectors).subspan(one.row * width, width));
    }
    segment.add_list(list[0].cell, ids, blocks);
  }

  // Writes the pending change behind what is committed, where no reader looks.
  CommitRecord append() const {
    int64_t at = align_up(record.length);
    SegmentWriter segment(
        [&](std::span<const std::byte> bytes) {
          const int code = write_at(file, at, bytes);
          if (code != 0) fail_system(kDoing, path, code);
          at += int64_t(bytes.size());
        },
        at, index.snapshot()->info());
    const std::vector<Added> order = in_order();
    for (size_t begin = 0; begin < order.size();) {
      size_t end = begin;
      while (end < order.size() && order[end].cell == order[begin].cell) ++end;
      put_list(segment, std::span(order).subspan(begin, end - begin));
      begin = end;
    }
    std::vector<int64_t> ids(dead.begin(), dead.end());
    std::ranges::sort(ids);
    return segment.finish(ids, record);
  }

  // What was not committed is no part of the file: its space is given back.
  void drop_tail() const {
    if (::ftruncate(file.get(), off_t(record.length)) != 0) fail_system(kDoing, path, errno);
  }

  void commit() {
    if (added.empty() && dead.empty()) return;
    if (!is_at(file, path)) {
      fail("index: '", path.native(), "' was moved or replaced while it was being written");
    }
    CommitRecord next;
    try {
      next = append();
      sync(file, path);
    } catch (const Error&) {
      drop_tail();
      throw;
    }
    try {
      write_record(file, next, 0, path);
      sync(file, path);  // from here on the change is there
      write_record(file, next, 1, path);
    } catch (const Error&) {
      reload();  // the record may have been written or not; the file knows
      throw;
    }
    reload();
  }

  void reload() {
    index.refresh();
    const CommitRecord now = read_record(file, "'" + path.native() + "'");
    if (now.generation != record.generation) clear();
    record = now;
  }

  void compact() {
    commit();
    const auto snapshot = index.snapshot();
    replace_index(path, snapshot->info(), live_lists(*snapshot, packer), record.generation);
    // Another writer may come first; nothing is pending, so what it commits is simply there.
    file = lock_existing(path, IfBusy::wait);
    index.refresh();
    settle();
  }

  fs::path path;
  const BlockPacker& packer;
  Descriptor file;  // has the lock
  IndexFile index;
  CommitRecord record;  // the newest of the file
  // Pending: what the next commit adds and deletes.
  std::unordered_map<int64_t, Added> added;
  std::unordered_set<int64_t> dead;
  std::vector<std::byte> vectors;  // (rows, vector_bytes)
  size_t rows = 0;
};

IndexWriter::IndexWriter(const fs::path& path, const BlockPacker& packer, IfBusy if_busy)
    : state_(std::make_unique<State>(path, packer, if_busy)) {}
IndexWriter::~IndexWriter() = default;
IndexWriter::IndexWriter(IndexWriter&&) noexcept = default;
IndexWriter& IndexWriter::operator=(IndexWriter&&) noexcept = default;

std::shared_ptr<const Snapshot> IndexWriter::snapshot() const { return state_->index.snapshot(); }

void IndexWriter::add(std::span<const int32_t> cells, std::span<const int64_t> ids,
                      std::span<const std::byte> vectors) {
  state_->check_batch("add", cells, ids, vectors);
  for (const int64_t id : ids) {
    if (state_->lives(id)) fail("index: add: id ", id, " is in the index already");
  }
  state_->put(cells, ids, vectors);
}

void IndexWriter::upsert(std::span<const int32_t> cells, std::span<const int64_t> ids,
                         std::span<const std::byte> vectors) {
  state_->check_batch("upsert", cells, ids, vectors);
  state_->kill(ids);
  state_->put(cells, ids, vectors);
}

void IndexWriter::erase(std::span<const int64_t> ids) {
  State::check_ids("erase", ids);
  state_->kill(ids);
}

void IndexWriter::commit() { state_->commit(); }

void IndexWriter::compact() { state_->compact(); }

}  // namespace tessera::lattice
