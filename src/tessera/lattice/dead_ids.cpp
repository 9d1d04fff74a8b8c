#include "tessera/lattice/dead_ids.h"

#include <bit>
#include <cstddef>
#include <utility>

namespace tessera::lattice {

size_t DeadIds::find(int64_t id) const {
  const size_t mask = slots_.size() - 1;
  // Fibonacci hashing: the high bits of the product depend on all bits of the id.
  size_t at = size_t((uint64_t(id) * 0x9e3779b97f4a7c15u) >> 32) & mask;
  while (slots_[at].killer >= 0 && slots_[at].id != id) at = (at + 1) & mask;
  return at;
}

void DeadIds::grow(size_t ids) {
  if (2 * ids <= slots_.size()) return;
  std::vector<Slot> before = std::exchange(slots_, std::vector<Slot>(std::bit_ceil(2 * ids)));
  for (const Slot& slot : before) {
    if (slot.killer >= 0) slots_[find(slot.id)] = slot;
  }
}

void DeadIds::add(int32_t number, std::span<const int64_t> ids) {
  if (ids.empty()) return;
  grow(size_t(size_) + ids.size());
  for (const int64_t id : ids) {
    Slot& slot = slots_[find(id)];
    size_ += slot.killer < 0;
    slot = {id, number};
  }
}

}  // namespace tessera::lattice
