// Codes as an index file moves them about: the numbers of a vector, then its two factors in f32.
#pragma once

#include "tessera/lattice/block_packer.h"
#include "tessera/lattice/code_layout.h"

namespace tessera::lattice {

class CodePacker : public BlockPacker {
 public:
  // `spec` must outlive this.
  explicit CodePacker(const CodeSpec& spec) : spec_(spec) {}

  int64_t vector_bytes() const override;
  int64_t block_bytes() const override { return lattice::block_bytes(spec_); }
  void pack(std::byte* block, int slot, std::span<const std::byte> vector) const override;
  void unpack(const std::byte* block, int slot, std::span<std::byte> vector) const override;

 private:
  const CodeSpec& spec_;
};

}  // namespace tessera::lattice
