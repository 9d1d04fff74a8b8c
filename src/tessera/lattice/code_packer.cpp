#include "tessera/lattice/code_packer.h"

#include <cstring>

namespace tessera::lattice {

int64_t CodePacker::vector_bytes() const {
  return spec_.bits == 0 ? 0 : spec_.padded_dim + int64_t(sizeof(CodeFactors));
}

void CodePacker::pack(std::byte* block, int slot, std::span<const std::byte> vector) const {
  if (vector.empty()) return;
  const auto codes = size_t(spec_.padded_dim);
  CodeFactors factors;
  std::memcpy(&factors, vector.data() + codes, sizeof factors);
  pack_code(spec_, block, slot, std::span(reinterpret_cast<const uint8_t*>(vector.data()), codes),
            factors);
}

void CodePacker::unpack(const std::byte* block, int slot, std::span<std::byte> vector) const {
  if (vector.empty()) return;
  const auto codes = size_t(spec_.padded_dim);
  const CodeFactors factors =
      unpack_code(spec_, block, slot, std::span(reinterpret_cast<uint8_t*>(vector.data()), codes));
  std::memcpy(vector.data() + codes, &factors, sizeof factors);
}

}  // namespace tessera::lattice
