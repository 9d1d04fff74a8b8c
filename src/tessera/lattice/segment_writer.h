// A segment of an index file, written: its lists in order of their cells, one at a time, then the
// rest.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "tessera/lattice/index_format.h"
#include "tessera/lattice/index_head.h"

namespace tessera::lattice {

// Takes the bytes of a file in order, the first ones at the segment's begin.
using ByteSink = std::function<void(std::span<const std::byte>)>;

class SegmentWriter {
 public:
  // REQUIRES: begin is a multiple of kAlignment.
  SegmentWriter(ByteSink sink, int64_t begin, const IndexInfo& info);

  // REQUIRES: ascending cells; ids strictly ascending and at least one; their blocks, whole.
  void add_list(int32_t cell, std::span<const int64_t> ids, std::span<const std::byte> blocks);
  // dead: strictly ascending. Returns the record that commits the segment after `before`.
  CommitRecord finish(std::span<const int64_t> dead, const CommitRecord& before);

 private:
  std::vector<std::byte> stored_form(std::span<const std::byte> blocks, int64_t count) const;
  int64_t put(std::span<const std::byte> bytes);  // returns where they begin
  void align();
  void flush();

  ByteSink sink_;
  int64_t block_bytes_;
  TailLayout tail_;
  int64_t at_;  // where the next byte goes
  std::vector<std::byte> buffer_;
  std::vector<ListRow> rows_;
  std::vector<std::byte> ids_;  // packed, of all lists so far
  SegmentFooter footer_;
};

}  // namespace tessera::lattice
