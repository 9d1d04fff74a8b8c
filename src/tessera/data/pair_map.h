// From pairs of tokens to values, by open addressing: merging does little else than asking for
// pairs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace tessera {

struct TokenPair {
  int32_t left, right;

  auto operator<=>(const TokenPair&) const = default;
};

template <class Value>
class PairMap {
 public:
  PairMap() : slots_(16) {}

  // Null when absent. Valid until the next insertion. REQUIRES: tokens of at least 0, as all do.
  const Value* find(TokenPair pair) const {
    const Slot& slot = slots_[place(slots_, pair)];
    return slot.pair.left < 0 ? nullptr : &slot.value;
  }

  // The value, made from `fresh` when absent, and whether it was.
  std::pair<Value*, bool> insert(TokenPair pair, Value fresh) {
    if (2 * (size_ + 1) > slots_.size()) grow();
    Slot& slot = slots_[place(slots_, pair)];
    const bool absent = slot.pair.left < 0;
    if (absent) {
      slot = {pair, std::move(fresh)};
      ++size_;
    }
    return {&slot.value, absent};
  }

  size_t size() const { return size_; }

 private:
  struct Slot {
    TokenPair pair = {-1, -1};
    Value value = {};
  };

  // Of the pair, or of the empty slot where it belongs.
  static size_t place(const std::vector<Slot>& slots, TokenPair pair) {
    uint64_t hash = uint64_t(pair.left) << 32 | uint32_t(pair.right);
    hash *= 0x9E3779B97F4A7C15u;
    hash ^= hash >> 32;
    const size_t mask = slots.size() - 1;
    size_t at = size_t(hash) & mask;
    while (slots[at].pair.left >= 0 && slots[at].pair != pair) at = (at + 1) & mask;
    return at;
  }

  void grow() {
    std::vector<Slot> larger(2 * slots_.size());
    for (Slot& slot : slots_) {
      if (slot.pair.left >= 0) larger[place(larger, slot.pair)] = std::move(slot);
    }
    slots_ = std::move(larger);
  }

  std::vector<Slot> slots_;  // a power of two, at least half of them empty
  size_t size_ = 0;
};

}  // namespace tessera
