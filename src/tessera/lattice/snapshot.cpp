#include "tessera/lattice/snapshot.h"

#include <algorithm>

namespace tessera::lattice {

Snapshot::Snapshot(std::shared_ptr<const IndexHead> head, const CommitRecord& record,
                   std::vector<std::shared_ptr<const Segment>> segments, const Snapshot* before)
    : head_(std::move(head)), record_(record), segments_(std::move(segments)) {
  if (before != nullptr) dead_ = before->dead_;
  const auto known = before == nullptr ? 0 : size_t(before->segments());
  for (size_t s = known; s < segments_.size(); ++s) {
    dead_.add(int32_t(s), segments_[s]->dead().decode());
  }
  // Counting sort: how many parts each cell has, then where its parts begin.
  part_begin_.resize(size_t(info().cells()) + 1);
  for (const auto& segment : segments_) {
    stored_ += segment->footer().vectors;
    max_id_ = std::max(max_id_, segment->footer().max_id);
    for (const ListRow& row : segment->rows()) ++part_begin_[row.cell + 1];
  }
  for (size_t cell = 1; cell < part_begin_.size(); ++cell) {
    part_begin_[cell] += part_begin_[cell - 1];
  }
  parts_.resize(part_begin_.back(), ListPart(nullptr, 0));
  std::vector<size_t> next(part_begin_.begin(), part_begin_.end() - 1);
  for (const auto& segment : segments_) {
    for (size_t row = 0; row < segment->rows().size(); ++row) {
      parts_[next[segment->rows()[row].cell]++] = ListPart(segment.get(), row);
    }
  }
}

std::span<const ListPart> Snapshot::parts(int32_t cell) const {
  TESSERA_ASSERT(0 <= cell && cell < info().cells());
  const size_t begin = part_begin_[size_t(cell)];
  return std::span(parts_).subspan(begin, part_begin_[size_t(cell) + 1] - begin);
}

std::vector<int64_t> Snapshot::live_ids(int32_t cell) const {
  std::vector<int64_t> ids;
  for (const ListPart& part : parts(cell)) {
    const size_t begin = ids.size();
    ids.resize(begin + size_t(part.count()));
    const auto added = std::span(ids).subspan(begin);
    part.ids().decode(added);
    if (!has_dead()) continue;
    for (int64_t& id : added) id = is_dead(part.segment(), id) ? -1 : id;
  }
  return ids;
}

int64_t Snapshot::live() const {
  if (!has_dead()) return stored_;
  if (const int64_t known = live_; known >= 0) return known;
  int64_t live = 0;  // two threads may both count: to the same number
  for (int32_t cell = 0; cell < info().cells(); ++cell) {
    for (const int64_t id : live_ids(cell)) live += id >= 0;
  }
  return live_ = live;
}

std::optional<Snapshot::Location> Snapshot::find(int64_t id) const {
  // The newest one that has it decides: what deleted it there deleted the older ones too.
  for (int32_t s = segments() - 1; s >= 0; --s) {
    const Segment& segment = *segments_[size_t(s)];
    const auto row = segment.find_row(id);
    if (!row) continue;
    if (is_dead(s, id)) return std::nullopt;
    return Location{s, int32_t(segment.rows()[*row].cell), *segment.ids(*row).find(id)};
  }
  return std::nullopt;
}

Snapshot::Sizes Snapshot::sizes() const {
  Sizes sizes;
  sizes.anchors = int64_t(info().anchors.size()) * (info().half_anchors ? 2 : 4);
  for (const auto& [name, data] : info().blobs) sizes.blobs += int64_t(data.size());
  for (const auto& segment : segments_) {
    for (const ListRow& row : segment->rows()) {
      sizes.codes += stored_bytes(info().tail, row.count, info().block_bytes);
      sizes.ids += row.id_bytes;
    }
  }
  return sizes;
}

Snapshot::Totals Snapshot::verify() const {
  Totals totals;
  std::vector<int64_t> living;
  for (const auto& segment : segments_) {
    segment->check_ids_differ();
    totals.lists += int64_t(segment->rows().size());
    for (size_t row = 0; row < segment->rows().size(); ++row) {
      segment->blocks(row);
      for (const int64_t id : segment->ids(row).decode()) {
        if (!is_dead(int32_t(segment->footer().number), id)) living.push_back(id);
      }
    }
  }
  std::ranges::sort(living);
  const auto twice = std::ranges::adjacent_find(living);
  if (twice != living.end()) refuse_index(head_->name, "id ", *twice, " is in two segments");
  totals.vectors = stored_;
  totals.live = int64_t(living.size());
  totals.bytes = bytes();
  return totals;
}

}  // namespace tessera::lattice
