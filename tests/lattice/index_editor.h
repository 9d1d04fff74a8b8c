// The structures of an index file, to look at and to change.
#pragma once

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>

#include "../io/temp_folder.h"
#include "tessera/lattice/block_packer.h"
#include "tessera/lattice/block_tail.h"
#include "tessera/lattice/index_format.h"

namespace tessera::lattice {

class Editor {
 public:
  Editor(std::string bytes, int64_t block_bytes)
      : bytes_(std::move(bytes)), block_bytes_(block_bytes) {}

  const std::string& bytes() const { return bytes_; }

  template <class T>
  T get(int64_t at) const {
    return read_struct<T>(bytes_of(bytes_).subspan(size_t(at)));
  }
  template <class T>
  void set(int64_t at, const T& value) {
    std::memcpy(bytes_.data() + at, &value, sizeof(T));
  }
  template <class T, class F>
  void change(int64_t at, F&& f) {
    T value = get<T>(at);
    f(value);
    set(at, value);
  }

  CommitRecord record() const {
    CommitRecord newest = get<CommitRecord>(record_at(0));
    const auto other = get<CommitRecord>(record_at(1));
    return other.generation > newest.generation ? other : newest;
  }
  void set_record(const CommitRecord& record) {
    for (int slot = 0; slot < kRecords; ++slot) set(record_at(slot), record);
  }
  // Where the footer of a segment is; by default of the newest.
  int64_t footer_at(int back = 0) const {
    int64_t at = record().footer;
    for (; back > 0; --back) at = get<SegmentFooter>(at).previous;
    return at;
  }
  int64_t row_at(int row, int back = 0) const {
    return get<SegmentFooter>(footer_at(back)).rows_at + row * int64_t(sizeof(ListRow));
  }

  // Makes all checksums right again, as far as the offsets lead to bytes of the file.
  void seal() {
    change<Preamble>(0, [&](Preamble& p) {
      for (uint32_t i = 0; i < std::min(p.sections, 16u); ++i) {
        const int64_t at = kFixedBytes + int64_t(i * sizeof(SectionRow));
        if (!has(at, sizeof(SectionRow))) break;
        change<SectionRow>(at, [&](SectionRow& row) { sum(row.at, row.bytes, row.data_sum); });
      }
      sum(kFixedBytes, int64_t(p.sections) * int64_t(sizeof(SectionRow)), p.sections_sum);
      p.sum = sum_of(p);
    });
    CommitRecord newest = record();
    newest.footer_sum = seal_segment(newest.footer, 0).value_or(newest.footer_sum);
    newest.sum = sum_of(newest);
    set_record(newest);
  }

 private:
  bool has(int64_t at, int64_t size) const {
    return at >= 0 && size >= 0 && at <= int64_t(bytes_.size()) &&
           size <= int64_t(bytes_.size()) - at;
  }
  void sum(int64_t at, int64_t size, uint32_t& to) const {
    if (has(at, size)) to = crc32c(bytes_of(bytes_).subspan(size_t(at), size_t(size)));
  }
  std::optional<uint32_t> seal_segment(int64_t at, int depth) {
    if (at == 0 || depth > 8 || !has(at, sizeof(SegmentFooter))) return std::nullopt;
    auto footer = get<SegmentFooter>(at);
    footer.previous_sum = seal_segment(footer.previous, depth + 1).value_or(footer.previous_sum);
    for (int64_t i = 0; i < std::min<int64_t>(footer.rows, 16); ++i) {
      if (!has(footer.rows_at, (i + 1) * int64_t(sizeof(ListRow)))) break;
      change<ListRow>(footer.rows_at + i * int64_t(sizeof(ListRow)), [&](ListRow& row) {
        const TailLayout tail{get<Preamble>(0).tail};
        sum(row.blocks_at, stored_bytes(tail, row.count, block_bytes_), row.blocks_sum);
        sum(row.ids_at, row.id_bytes, row.ids_sum);
      });
    }
    if (has(footer.rows, 0)) {
      sum(footer.rows_at, footer.rows * int64_t(sizeof(ListRow)), footer.rows_sum);
    }
    sum(footer.dead_at, footer.dead_bytes, footer.dead_sum);
    footer.sum = sum_of(footer);
    set(at, footer);
    return footer.sum;
  }

  std::string bytes_;
  int64_t block_bytes_;
};

}  // namespace tessera::lattice
