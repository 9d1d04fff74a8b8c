// A segment of an index file, read: lists of vectors by cell, and the ids that it deletes from the
// segments before it. The directory is checked when the segment is opened, each list when it is
// first asked for. Any number of threads may ask.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/io/mapped_range.h"
#include "tessera/lattice/block_tail.h"
#include "tessera/lattice/id_codec.h"
#include "tessera/lattice/index_format.h"

namespace tessera::lattice {

// `name` stands for the file.
template <class... Args>
[[noreturn]] void refuse_index(const std::string& name, const Args&... args) {
  fail("index: ", name, ": ", args...);
}

class Segment {
 public:
  // What a segment must agree with.
  struct Frame {
    int64_t cells = 0;
    int64_t block_bytes = 0;
    TailLayout tail = TailLayout::padded;
    int64_t begin = 0;  // where it may begin, and where it must have ended
    int64_t end = 0;
    int64_t footer = 0;  // what the record, or the segment after it, says of its footer
    uint32_t footer_sum = 0;
    uint32_t number = 0;
  };

  // Throws unless all of that holds, and the directory and deleted ids are intact.
  Segment(std::shared_ptr<const MappedRange> file, const Frame& frame, const std::string& name);

  const SegmentFooter& footer() const { return footer_; }
  std::span<const ListRow> rows() const { return rows_; }  // by ascending cell
  PackedIds dead() const { return dead_; }

  // Of list `row`. Each is checked by itself, at the first call: a throw if it is damaged, and so
  // at every later call.
  std::span<const std::byte> blocks(size_t row) const;  // those that the file keeps whole
  const std::byte* tail(size_t row) const;              // the block behind them; null: none
  PackedIds ids(size_t row) const;                      // ascending, as the vectors lie in them

  // The list that holds an id. The first call reads the ids of all lists.
  std::optional<size_t> find_row(int64_t id) const;
  // Throws if an id is in two lists.
  void check_ids_differ() const;

 private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  using Lines = std::vector<Line>;

  struct Place {
    int64_t id;
    uint32_t row;
  };

  template <class... Args>
  [[noreturn]] void refuse(const Args&... args) const {
    refuse_index(name_, "segment ", footer_.number, ": ", args...);
  }
  void check_footer(const Frame& frame) const;
  void check_rows(const Frame& frame) const;
  // `part` is 0 for the blocks, 1 for the ids.
  std::span<const std::byte> checked_part(size_t row, size_t part) const;
  const std::vector<Place>& places() const;

  std::shared_ptr<const MappedRange> file_;
  std::string name_;
  int64_t bytes_per_block_;
  TailLayout tail_;
  SegmentFooter footer_;
  std::span<const ListRow> rows_;
  PackedIds dead_;
  std::unique_ptr<std::atomic<bool>[]> checked_;  // (lists, 2)
  mutable std::vector<Lines> tails_;              // (lists)
  std::unique_ptr<std::once_flag[]> restored_;    // (lists)
  mutable std::mutex mutex_;
  mutable std::optional<std::vector<Place>> places_;  // by id; made when first needed
};

}  // namespace tessera::lattice
