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
    : file_(std::move(file)), name_(name), bytes_per_block_(frame.block_bytes) {
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
  checked_ = std::make_unique<std::atomic<bool>[]>(rows_.size());
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
  int64_t at = footer_.begin, vectors = 0, cell = -1;
  for (const ListRow& row : rows_) {
    if (int64_t(row.cell) <= cell || int64_t(row.cell) >= frame.cells) {
      refuse("expected cells in order and below ", frame.cells, ", got ", row.cell, " after ",
             cell);
    }
    cell = row.cell;
    int64_t bytes = 0;
    const bool fits = row.count > 0 &&
                      !__builtin_mul_overflow(blocks_for(row.count), bytes_per_block_, &bytes) &&
                      is_inside(row.at, bytes, at, footer_.dead_at) && row.at % kAlignment == 0 &&
                      is_inside(row.at + bytes, row.id_bytes, at, footer_.dead_at);
    if (!fits) refuse("the list of cell ", cell, " does not lie where its row says");
    at = row.at + bytes + row.id_bytes;
    vectors += row.count;
  }
  if (vectors != footer_.vectors) {
    refuse("expected ", footer_.vectors, " vectors, got lists of ", vectors);
  }
}

int64_t Segment::block_bytes(size_t row) const {
  return blocks_for(rows_[row].count) * bytes_per_block_;
}

void Segment::check_list(size_t row) const {
  if (checked_[row].load(std::memory_order_relaxed)) return;
  const ListRow& list = rows_[row];
  const int64_t blocks = block_bytes(row);
  const char* why = nullptr;
  if (crc32c(file_->bytes(list.at, blocks + list.id_bytes)) != list.data_sum) {
    why = "its checksum differs";
  } else {
    why = find_id_damage(file_->bytes(list.at + blocks, list.id_bytes), list.count);
  }
  if (why != nullptr) refuse("the list of cell ", list.cell, " is damaged: ", why);
  checked_[row].store(true, std::memory_order_relaxed);
}

std::span<const std::byte> Segment::blocks(size_t row) const {
  check_list(row);
  return file_->bytes(rows_[row].at, block_bytes(row));
}

PackedIds Segment::ids(size_t row) const {
  check_list(row);
  const ListRow& list = rows_[row];
  return {file_->bytes(list.at + block_bytes(row), list.id_bytes), list.count};
}

const std::vector<Segment::Place>& Segment::places() const {
  std::call_once(places_once_, [&] {
    std::vector<Place> places;
    for (size_t row = 0; row < rows_.size(); ++row) {
      for (const int64_t id : ids(row).decode()) places.push_back({id, uint32_t(row)});
    }
    std::ranges::sort(places, {}, &Place::id);
    places_ = std::move(places);
  });
  return places_;
}

std::optional<size_t> Segment::find_row(int64_t id) const {
  if (id < footer_.min_id || id > footer_.max_id) return std::nullopt;
  const auto place = std::ranges::lower_bound(places(), id, {}, &Place::id);
  if (place == places_.end() || place->id != id) return std::nullopt;
  return place->row;
}

void Segment::check_ids_differ() const {
  const auto twice = std::ranges::adjacent_find(places(), {}, &Place::id);
  if (twice != places_.end()) refuse("id ", twice->id, " is in two lists");
  const bool in_range = places_.empty() || (places_.front().id == footer_.min_id &&
                                            places_.back().id == footer_.max_id);
  if (!in_range) {
    refuse("expected ids from ", footer_.min_id, " to ", footer_.max_id, ", got ",
           places_.front().id, " to ", places_.back().id);
  }
}

}  // namespace tessera::lattice
