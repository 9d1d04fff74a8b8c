#include "tessera/lattice/segment.h"

#include <algorithm>

#include "tessera/lattice/block_packer.h"

namespace tessera::lattice {

namespace {

// Whether [at, at + bytes) lies in [begin, end), with no sum that could overflow.
bool is_inside(int64_t at, int64_t bytes, int64_t begin, int64_t end) {
  return begin <= at && at <= end && 0 <= bytes && bytes <= end - at;
}

}  // namespace

Segment::Segment(std::shared_ptr<const MappedRange> file, const Frame& frame,
                 const std::string& name)
    : file_(std::move(file)), name_(name), bytes_per_block_(frame.block_bytes), tail_(frame.tail) {
  footer_.number = frame.number;
  if (!is_inside(frame.footer, sizeof(SegmentFooter), std::max(frame.begin, file_->begin()),
                 std::min(frame.end, file_->end()))) {
    refuse("its footer is said to be at byte ", frame.footer, ", outside of the file's part");
  }
  footer_ = read_struct<SegmentFooter>(file_->bytes(frame.footer, sizeof(SegmentFooter)));
  check_footer(frame);
  rows_ = {reinterpret_cast<const ListRow*>(
               file_->bytes(footer_.rows_at, frame.footer - footer_.rows_at).data()),
           size_t(footer_.rows)};
  if (crc32c(std::as_bytes(rows_)) != footer_.rows_sum) {
    refuse("its directory is damaged: the checksum differs");
  }
  check_rows(frame);
  const auto dead = file_->bytes(footer_.dead_at, footer_.dead_bytes);
  if (crc32c(dead) != footer_.dead_sum) {
    refuse("its deleted ids are damaged: the checksum differs");
  }
  if (footer_.dead != 0) {
    if (const char* why = find_id_damage(dead, footer_.dead)) refuse("deleted ids: ", why);
  }
  dead_ = PackedIds(dead, footer_.dead);
  checked_ = std::make_unique<std::atomic<bool>[]>(2 * rows_.size());
  tails_.resize(rows_.size());
  restored_ = std::make_unique<std::once_flag[]>(rows_.size());
}

void Segment::check_footer(const Frame& frame) const {
  const SegmentFooter& f = footer_;
  if (!is_intact(f) || f.sum != frame.footer_sum || f.number != frame.number) {
    refuse_index(name_, "segment ", frame.number, ": its footer at byte ", frame.footer,
                 " is damaged");
  }
  const int64_t end = frame.footer;
  const bool in_place = is_inside(f.begin, 0, frame.begin, end) && f.begin % kAlignment == 0 &&
                        is_inside(f.dead_at, f.dead_bytes, f.begin, end) &&
                        is_inside(f.rows_at, 0, f.dead_at + f.dead_bytes, end) &&
                        f.rows_at % kAlignment == 0 &&
                        (end - f.rows_at) % int64_t(sizeof(ListRow)) == 0 &&
                        (end - f.rows_at) / int64_t(sizeof(ListRow)) == f.rows;
  if (!in_place || f.begin < file_->begin() || (f.previous == 0) != (f.number == 0)) {
    refuse("the parts that its footer names lie outside of it");
  }
}

void Segment::check_rows(const Frame& frame) const {
  const int64_t ids_begin = rows_.empty() ? footer_.dead_at : rows_[0].ids_at;
  int64_t blocks_end = footer_.begin, ids_end = ids_begin, vectors = 0, cell = -1;
  if (!is_inside(ids_begin, 0, footer_.begin, footer_.dead_at)) {
    refuse("its ids do not lie where its first row says");
  }
  for (const ListRow& row : rows_) {
    if (int64_t(row.cell) <= cell || int64_t(row.cell) >= frame.cells) {
      refuse("expected cells in order and below ", frame.cells, ", got ", row.cell, " after ",
             cell);
    }
    cell = row.cell;
    int64_t bytes = 0;
    const bool counts = row.count > 0 && row.blocks_at % kAlignment == 0 &&
                        !__builtin_mul_overflow(blocks_for(row.count), bytes_per_block_, &bytes);
    if (counts) bytes = stored_bytes(tail_, row.count, bytes_per_block_);
    const bool fits = counts && is_inside(row.blocks_at, bytes, blocks_end, ids_begin) &&
                      is_inside(row.ids_at, row.id_bytes, ids_end, footer_.dead_at);
    if (!fits) refuse("the list of cell ", cell, " does not lie where its row says");
    blocks_end = row.blocks_at + bytes;
    ids_end = row.ids_at + row.id_bytes;
    vectors += row.count;
  }
  if (vectors != footer_.vectors) {
    refuse("expected ", footer_.vectors, " vectors, got lists of ", vectors);
  }
}

std::span<const std::byte> Segment::checked_part(size_t row, size_t part) const {
  const ListRow& list = rows_[row];
  const bool is_ids = part == 1;
  const auto bytes =
      is_ids ? file_->bytes(list.ids_at, list.id_bytes)
             : file_->bytes(list.blocks_at, stored_bytes(tail_, list.count, bytes_per_block_));
  std::atomic<bool>& checked = checked_[2 * row + part];
  if (checked.load(std::memory_order_relaxed)) return bytes;
  const char* why = nullptr;
  if (crc32c(bytes) != (is_ids ? list.ids_sum : list.blocks_sum)) {
    why = is_ids ? "the checksum of its ids differs" : "the checksum of its blocks differs";
  } else if (is_ids) {
    why = find_id_damage(bytes, list.count);
  }
  if (why != nullptr) refuse("the list of cell ", list.cell, " is damaged: ", why);
  checked.store(true, std::memory_order_relaxed);
  return bytes;
}

std::span<const std::byte> Segment::blocks(size_t row) const {
  const int64_t whole = whole_blocks(tail_, rows_[row].count);
  return checked_part(row, 0).first(size_t(whole * bytes_per_block_));
}

const std::byte* Segment::tail(size_t row) const {
  const std::span<const std::byte> stored = checked_part(row, 0);
  const size_t whole = blocks(row).size();
  if (stored.size() == whole) return nullptr;
  std::call_once(restored_[row], [&] {
    Lines lines((size_t(bytes_per_block_) + sizeof(Line) - 1) / sizeof(Line));
    restore_block(tail_, stored.data() + whole, bytes_per_block_, rows_[row].count % kBlockVectors,
                  lines[0].bytes);
    tails_[row] = std::move(lines);
  });
  return tails_[row][0].bytes;
}

PackedIds Segment::ids(size_t row) const { return {checked_part(row, 1), rows_[row].count}; }

const std::vector<Segment::Place>& Segment::places() const {
  const std::lock_guard lock(mutex_);
  if (places_) return *places_;
  std::vector<Place> places;
  for (size_t row = 0; row < rows_.size(); ++row) {
    for (const int64_t id : ids(row).decode()) places.push_back({id, uint32_t(row)});
  }
  std::ranges::sort(places, {}, &Place::id);
  return places_.emplace(std::move(places));
}

std::optional<size_t> Segment::find_row(int64_t id) const {
  if (id < footer_.min_id || id > footer_.max_id) return std::nullopt;
  const std::vector<Place>& all = places();
  const auto place = std::ranges::lower_bound(all, id, {}, &Place::id);
  if (place == all.end() || place->id != id) return std::nullopt;
  return place->row;
}

void Segment::check_ids_differ() const {
  const std::vector<Place>& all = places();
  const auto twice = std::ranges::adjacent_find(all, {}, &Place::id);
  if (twice != all.end()) refuse("id ", twice->id, " is in two lists");
  if (all.empty()) return;
  if (all.front().id != footer_.min_id || all.back().id != footer_.max_id) {
    refuse("expected ids from ", footer_.min_id, " to ", footer_.max_id, ", got ", all.front().id,
           " to ", all.back().id);
  }
}

}  // namespace tessera::lattice
