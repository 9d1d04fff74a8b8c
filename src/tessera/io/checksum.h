// CRC-32C (Castagnoli; reflected polynomial 0x82f63b78, as in iSCSI and ext4).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tessera {

// The checksum of `bytes`, or of earlier bytes followed by these when `before` is theirs:
// crc32c(b, crc32c(a)) == crc32c(a then b). Uses the processor's instruction where it has one.
uint32_t crc32c(std::span<const std::byte> bytes, uint32_t before = 0);

// The same by tables alone, on any processor.
uint32_t crc32c_portable(std::span<const std::byte> bytes, uint32_t before = 0);

}  // namespace tessera
