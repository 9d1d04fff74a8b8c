#include "tessera/lattice/block_packer.h"

#include <algorithm>

namespace tessera::lattice {

void PlainPacker::pack(std::byte* block, int slot, std::span<const std::byte> vector) const {
  std::ranges::copy(vector, block + slot * vector_bytes_);
}

void PlainPacker::unpack(const std::byte* block, int slot, std::span<std::byte> vector) const {
  std::copy_n(block + slot * vector_bytes_, vector_bytes_, vector.data());
}

}  // namespace tessera::lattice
