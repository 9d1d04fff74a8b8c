#include "tessera/io/checksum.h"

#include <array>
#include <bit>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace tessera {

namespace {

constexpr uint32_t kPolynomial = 0x82f63b78u;

// tables[k][b]: the effect of byte b followed by k zero bytes, so eight bytes need eight
// independent look-ups instead of a chain of eight.
constexpr auto kTables = [] {
  std::array<std::array<uint32_t, 256>, 8> tables{};
  for (uint32_t b = 0; b < 256; ++b) {
    uint32_t crc = b;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kPolynomial : 0);
    tables[0][b] = crc;
  }
  for (size_t k = 1; k < 8; ++k) {
    for (size_t b = 0; b < 256; ++b) {
      const uint32_t crc = tables[k - 1][b];
      tables[k][b] = (crc >> 8) ^ tables[0][crc & 0xff];
    }
  }
  return tables;
}();

static_assert(std::endian::native == std::endian::little, "load64 feeds bytes in file order");

uint64_t load64(const std::byte* p) {
  uint64_t word;
  std::memcpy(&word, p, sizeof(word));
  return word;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) uint32_t crc32c_sse42(std::span<const std::byte> bytes,
                                                        uint32_t before) {
  const std::byte* p = bytes.data();
  const std::byte* const end = p + bytes.size();
  uint64_t crc = ~before;
  for (; end - p >= 8; p += 8) crc = _mm_crc32_u64(crc, load64(p));
  auto crc32 = static_cast<uint32_t>(crc);
  for (; p != end; ++p) crc32 = _mm_crc32_u8(crc32, static_cast<uint8_t>(*p));
  return ~crc32;
}
#endif

using Crc32c = uint32_t (*)(std::span<const std::byte>, uint32_t);

Crc32c fastest() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("sse4.2")) return crc32c_sse42;
#endif
  return crc32c_portable;
}

}  // namespace

uint32_t crc32c_portable(std::span<const std::byte> bytes, uint32_t before) {
  const std::byte* p = bytes.data();
  const std::byte* const end = p + bytes.size();
  uint32_t crc = ~before;
  for (; end - p >= 8; p += 8) {
    const uint64_t word = load64(p) ^ crc;
    crc = 0;
    for (size_t k = 0; k < 8; ++k) crc ^= kTables[7 - k][(word >> (8 * k)) & 0xff];
  }
  for (; p != end; ++p) crc = (crc >> 8) ^ kTables[0][(crc ^ uint32_t(*p)) & 0xff];
  return ~crc;
}

uint32_t crc32c(std::span<const std::byte> bytes, uint32_t before) {
  static const Crc32c function = fastest();
  return function(bytes, before);
}

}  // namespace tessera
