#include "tessera/io/checksum.h"

#include <gtest/gtest.h>

#include <random>
#include <string_view>
#include <vector>

namespace tessera {
namespace {

using Bytes = std::vector<std::byte>;

Bytes counting(int first, int step) {
  Bytes bytes;
  for (int i = 0; i < 32; ++i) bytes.push_back(std::byte(first + step * i));
  return bytes;
}

Bytes random_bytes(size_t n) {
  std::mt19937 random(3);
  Bytes bytes(n);
  for (std::byte& b : bytes) b = std::byte(random());
  return bytes;
}

// The definition: one bit at a time.
uint32_t reference(std::span<const std::byte> bytes) {
  uint32_t crc = ~0u;
  for (const std::byte b : bytes) {
    crc ^= uint32_t(b);
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 1) != 0 ? (crc >> 1) ^ 0x82f63b78u : crc >> 1;
  }
  return ~crc;
}

using Function = uint32_t (*)(std::span<const std::byte>, uint32_t);

class ChecksumTest : public testing::TestWithParam<Function> {
 protected:
  uint32_t checksum(std::span<const std::byte> bytes, uint32_t before = 0) const {
    return GetParam()(bytes, before);
  }
};

// The vectors of RFC 3720, appendix B.4, and the usual check value.
TEST_P(ChecksumTest, KnownVectors) {
  EXPECT_EQ(checksum({}), 0u);
  EXPECT_EQ(checksum(std::as_bytes(std::span(std::string_view("123456789")))), 0xe3069283u);
  EXPECT_EQ(checksum(counting(0, 0)), 0x8a9136aau);
  EXPECT_EQ(checksum(counting(0xff, 0)), 0x62a8ab43u);
  EXPECT_EQ(checksum(counting(0, 1)), 0x46dd794eu);
  EXPECT_EQ(checksum(counting(31, -1)), 0x113fdb5cu);
}

TEST_P(ChecksumTest, EveryLengthAndAlignmentAgreesWithTheDefinition) {
  const Bytes bytes = random_bytes(128);
  for (size_t begin = 0; begin < 16; ++begin) {
    for (size_t length = 0; length <= 100; ++length) {
      const auto part = std::span(bytes).subspan(begin, length);
      ASSERT_EQ(checksum(part), reference(part)) << begin << " " << length;
    }
  }
}

TEST_P(ChecksumTest, PiecesChain) {
  const Bytes bytes = random_bytes(100);
  const std::span<const std::byte> all = bytes;
  for (size_t cut = 0; cut <= all.size(); ++cut) {
    ASSERT_EQ(checksum(all.subspan(cut), checksum(all.first(cut))), checksum(all)) << cut;
  }
}

TEST_P(ChecksumTest, EveryFlippedBitIsSeen) {
  Bytes bytes = random_bytes(64);
  const uint32_t before = checksum(bytes);
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    bytes[bit / 8] ^= std::byte(1 << (bit % 8));
    ASSERT_NE(checksum(bytes), before) << bit;
    bytes[bit / 8] ^= std::byte(1 << (bit % 8));
  }
}

INSTANTIATE_TEST_SUITE_P(Paths, ChecksumTest, testing::Values(&crc32c, &crc32c_portable));

}  // namespace
}  // namespace tessera
