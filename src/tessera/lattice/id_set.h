// A set of ids to search within, or to leave out. Refers to the caller's memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

namespace tessera::lattice {

class IdSet {
 public:
  // ids: ascending.
  static IdSet sorted(std::span<const int64_t> ids) { return IdSet(ids, {}); }
  // Bit id % 64 of word id / 64; ids past the end are not in the set.
  static IdSet bitmap(std::span<const uint64_t> words) { return IdSet({}, words); }

  bool contains(int64_t id) const {
    if (words_.empty()) return std::binary_search(ids_.begin(), ids_.end(), id);
    const auto word = uint64_t(id) / 64;
    return word < words_.size() && (words_[word] >> (uint64_t(id) % 64) & 1) != 0;
  }

 private:
  IdSet(std::span<const int64_t> ids, std::span<const uint64_t> words) : ids_(ids), words_(words) {}

  std::span<const int64_t> ids_;
  std::span<const uint64_t> words_;
};

}  // namespace tessera::lattice
