// Ascending ids in about log2(range / count) + 2 bits each (Elias and Fano): 1.5 bytes for every
// 1,024th number of a million. One id is found without decoding the others.
//
//   8 bytes  the first id
//   1 byte   l, the low bits of an id that are stored as they are: 0…56
//   low      l bits of each (id - first), one after the other, the first in the lowest bits
//   high     (id - first) >> l of the i-th id as a 1 at bit i + ((id - first) >> l); the rest is 0
//
// low and high begin at whole bytes. The number of ids is kept elsewhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace tessera::lattice {

// REQUIRES: ids strictly ascending, none negative, at least one.
std::vector<std::byte> pack_ids(std::span<const int64_t> ids);

// Why `bytes` are not `count` ids as pack_ids makes them; null when they are.
const char* find_id_damage(std::span<const std::byte> bytes, int64_t count);

// A view of packed ids.
class PackedIds {
 public:
  PackedIds() = default;
  // REQUIRES: find_id_damage(bytes, count) is null, or count is 0. The bytes stay the caller's.
  PackedIds(std::span<const std::byte> bytes, int64_t count);

  int64_t size() const { return count_; }
  // Time grows with size() / 64.
  int64_t operator[](int64_t i) const;
  std::optional<int64_t> find(int64_t id) const;
  // ids: (size())
  void decode(std::span<int64_t> ids) const;
  std::vector<int64_t> decode() const;

 private:
  int64_t value(int64_t i, int64_t high) const;

  int64_t count_ = 0;
  int64_t first_ = 0;
  int low_bits_ = 0;
  std::span<const std::byte> low_;
  std::span<const std::byte> high_;
};

}  // namespace tessera::lattice
