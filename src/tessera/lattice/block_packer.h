// How the vectors of a list lie in its blocks. The index file keeps blocks as they are; whoever
// moves a vector from one to another does it through this.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tessera::lattice {

inline constexpr int64_t kBlockVectors = 32;

class BlockPacker {
 public:
  virtual ~BlockPacker() = default;

  // Of one vector as pack takes it, and of a block of 32. Both may be 0: an index without codes.
  virtual int64_t vector_bytes() const = 0;
  virtual int64_t block_bytes() const = 0;
  // Puts a vector into a slot of a block, or reads it from there. Slots never written are 0.
  // slot: 0…31; vector: (vector_bytes()).
  virtual void pack(std::byte* block, int slot, std::span<const std::byte> vector) const = 0;
  virtual void unpack(const std::byte* block, int slot, std::span<std::byte> vector) const = 0;
};

// The vectors of a block one after the other.
class PlainPacker : public BlockPacker {
 public:
  explicit PlainPacker(int64_t vector_bytes) : vector_bytes_(vector_bytes) {}

  int64_t vector_bytes() const override { return vector_bytes_; }
  int64_t block_bytes() const override { return vector_bytes_ * kBlockVectors; }
  void pack(std::byte* block, int slot, std::span<const std::byte> vector) const override;
  void unpack(const std::byte* block, int slot, std::span<std::byte> vector) const override;

 private:
  int64_t vector_bytes_;
};

inline int64_t blocks_for(int64_t vectors) {
  return vectors / kBlockVectors + (vectors % kBlockVectors != 0);
}

}  // namespace tessera::lattice
