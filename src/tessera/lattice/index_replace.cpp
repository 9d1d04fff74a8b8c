#include "tessera/lattice/index_replace.h"

#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>

#include "tessera/io/atomic_file.h"
#include "tessera/lattice/segment_writer.h"

namespace tessera::lattice {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kDoing = "index: cannot write";

// A live vector of a list: where it lies now.
struct Live {
  int64_t id;
  const std::byte* block;
  int slot;
};

std::vector<Live> live_of(const Snapshot& snapshot, int32_t cell) {
  const int64_t block_bytes = snapshot.info().block_bytes;
  std::vector<Live> found;
  for (const ListPart& part : snapshot.parts(cell)) {
    int64_t i = 0;
    for (const int64_t id : part.ids().decode()) {
      if (!snapshot.is_dead(part.segment(), id)) {
        found.push_back({id, part.block(i / kBlockVectors, block_bytes), int(i % kBlockVectors)});
      }
      ++i;
    }
  }
  std::ranges::sort(found, {}, &Live::id);
  const auto twice = std::ranges::adjacent_find(found, {}, &Live::id);
  if (twice != found.end()) fail("index: id ", twice->id, " lives twice in cell ", cell);
  return found;
}

void put_records(AtomicFile& file, const CommitRecord& record) {
  for (int slot = 0; slot < kRecords; ++slot)
    file.rewrite(record_at(slot), bytes_of_struct(record));
}

}  // namespace

bool is_at(const Descriptor& file, const fs::path& path) {
  struct stat ours = {}, there = {};
  if (::fstat(file.get(), &ours) != 0) fail_system(kDoing, path, errno);
  return ::stat(path.c_str(), &there) == 0 && ours.st_ino == there.st_ino &&
         ours.st_dev == there.st_dev;
}

Descriptor lock_index(const fs::path& path, IfBusy if_busy) {
  while (true) {
    Descriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK));
    if (!file.valid() && errno == ENOENT) return file;
    if (!file.valid()) fail_system(kDoing, path, errno);
    const int how = if_busy == IfBusy::wait ? LOCK_EX : LOCK_EX | LOCK_NB;
    while (::flock(file.get(), how) != 0) {
      if (errno == EWOULDBLOCK) fail("index: '", path.native(), "' is being written by another");
      if (errno != EINTR) fail_system(kDoing, path, errno);
    }
    if (is_at(file, path)) return file;
  }
}

void replace_index(const fs::path& path, const IndexInfo& info, const FillList& fill,
                   uint64_t before) {
  const std::vector<std::byte> head = make_head(info);
  CommitRecord record;
  record.generation = before;
  AtomicFile file(path);
  file.write(head);
  SegmentWriter segment([&](std::span<const std::byte> bytes) { file.write(bytes); },
                        int64_t(head.size()), info);
  bool any = false;
  std::vector<int64_t> ids;
  std::vector<std::byte> blocks;
  for (int32_t cell = 0; fill && cell < info.cells(); ++cell) {
    ids.clear();
    blocks.clear();
    fill(cell, ids, blocks);
    if (ids.empty()) continue;
    segment.add_list(cell, ids, blocks);
    any = true;
  }
  if (any) {
    record = segment.finish({}, record);
  } else {
    ++record.generation;
    record.length = int64_t(head.size());
    record.sum = sum_of(record);
  }
  put_records(file, record);
  file.commit();
}

FillList live_lists(const Snapshot& snapshot, const BlockPacker& packer) {
  if (packer.block_bytes() != snapshot.info().block_bytes) {
    fail("index: expected a packer of blocks of ", snapshot.info().block_bytes, " bytes, got ",
         packer.block_bytes());
  }
  return [&snapshot, &packer](int32_t cell, std::vector<int64_t>& ids,
                              std::vector<std::byte>& blocks) {
    const auto parts = snapshot.parts(cell);
    if (parts.size() == 1 && !snapshot.has_dead()) {
      ids = parts[0].ids().decode();
      blocks.assign(parts[0].blocks().begin(), parts[0].blocks().end());
      const std::byte* tail = parts[0].tail();
      if (tail != nullptr) blocks.insert(blocks.end(), tail, tail + packer.block_bytes());
      return;
    }
    const std::vector<Live> live = live_of(snapshot, cell);
    std::vector<std::byte> vector(size_t(packer.vector_bytes()));
    blocks.resize(size_t(blocks_for(int64_t(live.size())) * packer.block_bytes()));
    for (const Live& from : live) {
      const auto i = int64_t(ids.size());
      ids.push_back(from.id);
      packer.unpack(from.block, from.slot, vector);
      packer.pack(blocks.data() + i / kBlockVectors * packer.block_bytes(), int(i % kBlockVectors),
                  vector);
    }
  };
}

void write_index(const fs::path& path, const IndexInfo& info, const FillList& fill) {
  check_info(info);
  struct stat status = {};
  const bool is_file = ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
  const Descriptor lock = is_file ? lock_index(path, IfBusy::wait) : Descriptor(-1);
  replace_index(path, info, fill, 0);
}

void write_compacted(const fs::path& path, const Snapshot& snapshot, const BlockPacker& packer) {
  write_index(path, snapshot.info(), live_lists(snapshot, packer));
}

}  // namespace tessera::lattice
