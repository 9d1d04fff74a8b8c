// An index as one commit left it. It never changes, and stays whole while writers add to the file
// or replace it. Any number of threads may read it.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "tessera/lattice/dead_ids.h"
#include "tessera/lattice/index_head.h"
#include "tessera/lattice/segment.h"

namespace tessera::lattice {

// What one segment holds of a cell: `count` vectors in blocks of 32, and their ids. The last block
// is apart where the file keeps it shortened.
class ListPart {
 public:
  ListPart(const Segment* segment, size_t row) : segment_(segment), row_(row) {}

  int32_t segment() const { return int32_t(segment_->footer().number); }
  int32_t cell() const { return int32_t(segment_->rows()[row_].cell); }
  int64_t count() const { return segment_->rows()[row_].count; }
  // Each throws if it is damaged, which is found when it is first asked for.
  std::span<const std::byte> blocks() const { return segment_->blocks(row_); }
  const std::byte* tail() const { return segment_->tail(row_); }
  // One of the blocks, wherever it lies; `bytes` of each.
  const std::byte* block(int64_t number, int64_t bytes) const {
    const std::span<const std::byte> whole = blocks();
    const bool is_whole = number * bytes < int64_t(whole.size()) || bytes == 0;
    return is_whole ? whole.data() + number * bytes : tail();
  }
  PackedIds ids() const { return segment_->ids(row_); }

 private:
  const Segment* segment_;
  size_t row_;
};

class Snapshot {
 public:
  struct Location {
    int32_t segment;
    int32_t cell;
    int64_t position;  // in the list of the cell in that segment
  };
  struct Totals {
    int64_t lists = 0;
    int64_t vectors = 0;  // stored, dead ones included
    int64_t live = 0;
    int64_t bytes = 0;  // of the file
  };

  // Where the bytes of the file are; what is left of bytes() are tables, deleted ids and padding.
  struct Sizes {
    int64_t anchors = 0;
    int64_t blobs = 0;
    int64_t codes = 0;
    int64_t ids = 0;
  };

  // `before`, if any, is of the same file: `segments` begin with its segments.
  Snapshot(std::shared_ptr<const IndexHead> head, const CommitRecord& record,
           std::vector<std::shared_ptr<const Segment>> segments, const Snapshot* before);

  const IndexInfo& info() const { return head_->info; }
  uint64_t generation() const { return record_.generation; }
  int32_t segments() const { return int32_t(segments_.size()); }
  int64_t bytes() const { return record_.length; }
  Sizes sizes() const;

  // The parts of a cell, oldest segment first. REQUIRES: 0 <= cell < info().cells().
  std::span<const ListPart> parts(int32_t cell) const;
  // The ids of all parts of a cell, one after the other, with -1 in the place of dead ones.
  std::vector<int64_t> live_ids(int32_t cell) const;
  // Whether a vector of `segment` was deleted or replaced later. Without deletes, never.
  bool is_dead(int32_t segment, int64_t id) const { return dead_.is_dead(segment, id); }
  bool has_dead() const { return dead_.size() > 0; }

  // Vectors in all lists, dead ones included.
  int64_t stored() const { return stored_; }
  // Those that are not dead. Where there are deletes, the first call reads all ids.
  int64_t live() const;
  int64_t max_id() const { return max_id_; }  // of all stored; -1 when there are none
  // Where the live vector of an id is. The first call for an id that a segment may hold reads the
  // ids of that segment; later ones search.
  std::optional<Location> find(int64_t id) const;

  // Reads and checks everything: checksums, ids that live twice. Throws at the first damage.
  Totals verify() const;

 private:
  friend class IndexFile;

  std::shared_ptr<const IndexHead> head_;
  CommitRecord record_;
  std::vector<std::shared_ptr<const Segment>> segments_;
  std::vector<size_t> part_begin_;  // (cells + 1)
  std::vector<ListPart> parts_;     // by cell, then by segment
  DeadIds dead_;
  int64_t stored_ = 0;
  int64_t max_id_ = -1;
  mutable std::atomic<int64_t> live_{-1};  // counted when first asked for
};

}  // namespace tessera::lattice
