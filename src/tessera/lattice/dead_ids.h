// Which ids were deleted, and when: a segment deletes from those before it, so an id is dead in
// segment s when a later one deleted it. A hash table, since every result of a search asks.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tessera::lattice {

class DeadIds {
 public:
  // Segment `number` deletes `ids`. REQUIRES: numbers ascend from call to call.
  void add(int32_t number, std::span<const int64_t> ids);
  bool is_dead(int32_t segment, int64_t id) const {
    return !slots_.empty() && slots_[find(id)].killer > segment;
  }
  // Ids deleted at some time; some may never have existed, or live again.
  int64_t size() const { return size_; }

 private:
  struct Slot {
    int64_t id = 0;
    int32_t killer = -1;  // -1: free
  };
  size_t find(int64_t id) const;  // its slot, or the free one where it would go
  void grow(size_t ids);

  std::vector<Slot> slots_;  // a power of two, at most half of them taken
  int64_t size_ = 0;
};

}  // namespace tessera::lattice
