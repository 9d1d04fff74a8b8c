#include "tessera/lattice/segment_writer.h"

#include <algorithm>
#include <limits>

#include "tessera/base/error.h"
#include "tessera/lattice/block_packer.h"
#include "tessera/lattice/id_codec.h"

namespace tessera::lattice {

namespace {

constexpr size_t kBufferBytes = size_t(1) << 20;

}  // namespace

SegmentWriter::SegmentWriter(ByteSink sink, int64_t begin, const IndexInfo& info)
    : sink_(std::move(sink)), block_bytes_(info.block_bytes), tail_(info.tail), at_(begin) {
  TESSERA_ASSERT(begin % kAlignment == 0);
  footer_.begin = begin;
}

int64_t SegmentWriter::put(std::span<const std::byte> bytes) {
  const int64_t begin = at_;
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  at_ += int64_t(bytes.size());
  if (buffer_.size() >= kBufferBytes) flush();
  return begin;
}

void SegmentWriter::align() {
  constexpr std::byte kZeros[kAlignment] = {};
  put(std::span(kZeros).first(size_t(align_up(at_) - at_)));
}

void SegmentWriter::flush() {
  sink_(buffer_);
  buffer_.clear();
}

std::vector<std::byte> SegmentWriter::stored_form(std::span<const std::byte> blocks,
                                                  int64_t count) const {
  std::vector<std::byte> stored(blocks.begin(), blocks.end());
  const int64_t whole = whole_blocks(tail_, count) * block_bytes_;
  stored.resize(size_t(stored_bytes(tail_, count, block_bytes_)));
  if (int64_t(stored.size()) > whole) {
    shorten_block(tail_, blocks.data() + whole, block_bytes_, count % kBlockVectors,
                  stored.data() + whole);
  }
  return stored;
}

void SegmentWriter::add_list(int32_t cell, std::span<const int64_t> ids,
                             std::span<const std::byte> blocks) {
  const auto count = int64_t(ids.size());
  TESSERA_ASSERT(rows_.empty() || int64_t(rows_.back().cell) < cell);
  TESSERA_ASSERT(count <= std::numeric_limits<uint32_t>::max());
  TESSERA_ASSERT(int64_t(blocks.size()) == blocks_for(count) * block_bytes_);
  const std::vector<std::byte> packed = pack_ids(ids);
  const std::vector<std::byte> stored = stored_form(blocks, count);
  align();
  ListRow row;
  row.cell = uint32_t(cell);
  row.count = uint32_t(count);
  row.blocks_at = put(stored);
  row.blocks_sum = crc32c(stored);
  row.ids_at = int64_t(ids_.size());  // from where finish puts all of them
  row.id_bytes = int64_t(packed.size());
  row.ids_sum = crc32c(packed);
  ids_.insert(ids_.end(), packed.begin(), packed.end());
  rows_.push_back(row);
  const bool first = footer_.vectors == 0;
  footer_.min_id = first ? ids.front() : std::min(footer_.min_id, ids.front());
  footer_.max_id = std::max(footer_.max_id, ids.back());
  footer_.vectors += count;
}

CommitRecord SegmentWriter::finish(std::span<const int64_t> dead, const CommitRecord& before) {
  const std::vector<std::byte> packed = dead.empty() ? std::vector<std::byte>() : pack_ids(dead);
  align();
  const int64_t ids_begin = put(ids_);
  for (ListRow& row : rows_) row.ids_at += ids_begin;
  align();
  footer_.dead_at = put(packed);
  footer_.dead_bytes = int64_t(packed.size());
  footer_.dead = int64_t(dead.size());
  footer_.dead_sum = crc32c(packed);
  align();
  const auto rows = std::as_bytes(std::span(rows_));
  footer_.rows_at = put(rows);
  footer_.rows = int64_t(rows_.size());
  footer_.rows_sum = crc32c(rows);
  footer_.previous = before.footer;
  footer_.previous_sum = before.footer_sum;
  footer_.number = before.segments;
  footer_.sum = sum_of(footer_);
  CommitRecord record;
  record.generation = before.generation + 1;
  record.footer = put(bytes_of_struct(footer_));
  record.footer_sum = footer_.sum;
  record.length = at_;
  record.segments = before.segments + 1;
  record.sum = sum_of(record);
  flush();
  return record;
}

}  // namespace tessera::lattice
