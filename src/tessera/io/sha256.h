// SHA-256 (FIPS 180-4): names for contents.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace tessera {

using Digest = std::array<std::byte, 32>;

// Of all bytes added, in order. finish() ends it: nothing may be added afterwards.
class Sha256 {
 public:
  void add(std::span<const std::byte> bytes);
  Digest finish();

 private:
  void mix(const std::byte* block);  // 64 bytes

  std::array<uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::byte, 64> block_ = {};
  uint64_t length_ = 0;  // bytes added
};

Digest sha256(std::span<const std::byte> bytes);

// 64 lower-case hexadecimal digits.
std::string to_hex(const Digest& digest);

}  // namespace tessera
