#include "tessera/lattice/id_codec.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <set>
#include <string>

#include "tessera/base/philox.h"

namespace tessera::lattice {
namespace {

constexpr int64_t kMaxId = std::numeric_limits<int64_t>::max();

uint64_t draw(uint64_t seed, uint64_t i) {
  const auto words = philox(seed, i);
  return uint64_t(words[0]) << 32 | words[1];
}

std::vector<int64_t> random_ids(uint64_t seed, int64_t count, uint64_t below) {
  std::set<int64_t> ids;
  for (uint64_t i = 0; int64_t(ids.size()) < count; ++i) ids.insert(int64_t(draw(seed, i) % below));
  return {ids.begin(), ids.end()};
}

void expect_round_trip(const std::vector<int64_t>& ids) {
  const std::vector<std::byte> bytes = pack_ids(ids);
  const auto count = int64_t(ids.size());
  ASSERT_EQ(find_id_damage(bytes, count), nullptr);
  // Of its own, so that a sanitizer sees a read past the end.
  const std::vector<std::byte> exact(bytes.begin(), bytes.end());
  const PackedIds packed(exact, count);
  EXPECT_EQ(packed.decode(), ids);
  for (int64_t i = 0; i < count; ++i) {
    ASSERT_EQ(packed[i], ids[size_t(i)]) << i;
    ASSERT_EQ(packed.find(ids[size_t(i)]), i);
    const int64_t next = ids[size_t(i)] + (ids[size_t(i)] < kMaxId);
    if (i + 1 < count && next != ids[size_t(i) + 1]) ASSERT_EQ(packed.find(next), std::nullopt);
  }
}

TEST(IdCodec, GivesBackWhatWasPacked) {
  expect_round_trip({0});
  expect_round_trip({kMaxId});
  expect_round_trip({0, kMaxId});
  expect_round_trip({0, 1, 2, kMaxId - 1, kMaxId});
  std::vector<int64_t> dense;
  for (int64_t i = 0; i < 1000; ++i) dense.push_back(5 + i);
  expect_round_trip(dense);
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const auto count = int64_t(1 + draw(seed, 1) % 300);
    const uint64_t below = std::max(uint64_t(kMaxId) >> (draw(seed, 2) % 54), uint64_t(2 * count));
    expect_round_trip(random_ids(seed, count, below));
  }
}

TEST(IdCodec, NoIds) {
  EXPECT_TRUE(PackedIds({}, 0).decode().empty());
  EXPECT_EQ(PackedIds({}, 0).find(3), std::nullopt);
}

TEST(IdCodec, AMillionDenseIdsInAThousandListsTakeOneAndAHalfBytesEach) {
  std::vector<std::vector<int64_t>> lists(1024);
  for (int64_t id = 0; id < 1'000'000; ++id) {
    lists[draw(7, uint64_t(id)) % lists.size()].push_back(id);
  }
  size_t bytes = 0;
  for (const auto& list : lists) bytes += pack_ids(list).size();
  EXPECT_LT(double(bytes) / 1e6, 1.53);
  EXPECT_GT(double(bytes) / 1e6, 1.43);  // the entropy; fewer would be a miscount
}

std::string damage(std::vector<std::byte> bytes, int64_t count) {
  const char* text = find_id_damage(bytes, count);
  return text == nullptr ? "" : text;
}

TEST(IdCodec, DamageIsNamed) {
  const std::vector<int64_t> ids = {3, 70, 200, 1000};
  const std::vector<std::byte> good = pack_ids(ids);
  EXPECT_EQ(damage(good, 4), "");
  EXPECT_EQ(damage({}, 1), "its ids are cut short");
  EXPECT_EQ(damage(good, 0), "its ids are cut short");
  EXPECT_EQ(damage(good, kMaxId), "its ids are cut short");
  EXPECT_EQ(damage({good.begin(), good.begin() + 10}, 4), "its ids are cut short");
  EXPECT_EQ(damage({good.begin(), good.end() - 1}, 4), "its ids are not as many as it says");
  EXPECT_EQ(damage(good, 3), "its ids are not as many as it says");
  auto bytes = good;
  ASSERT_EQ(bytes[8], std::byte{7});  // 7 low bits: those of the second id, 67, become 0
  bytes[9] &= std::byte{0x7f};
  bytes[10] &= std::byte{0xc0};
  EXPECT_EQ(damage(bytes, 4), "its ids are out of order");
  bytes = good;
  bytes[7] = std::byte{0x80};
  EXPECT_EQ(damage(bytes, 4), "its first id is negative");
  bytes = good;
  bytes[8] = std::byte{57};
  EXPECT_EQ(damage(bytes, 4), "its ids have more than 56 low bits");
  bytes = good;
  std::memcpy(bytes.data(), &kMaxId, 8);
  EXPECT_EQ(damage(bytes, 4), "its ids exceed 2^63 - 1");
  bytes = pack_ids(std::vector<int64_t>{0, kMaxId});
  bytes[0] = std::byte{1};
  EXPECT_EQ(damage(bytes, 2), "its ids exceed 2^63 - 1");
  bytes.back() |= std::byte{0x80};
  bytes[0] = std::byte{0};
  EXPECT_EQ(damage(bytes, 2), "its ids are not as many as it says");
}

// What is accepted must decode inside its bytes, to ascending ids; sanitizers watch.
TEST(IdCodec, RandomBytesAreRefusedOrDecode) {
  int accepted = 0;
  for (uint64_t seed = 0; seed < 20'000; ++seed) {
    const auto ids = random_ids(seed, int64_t(1 + draw(seed, 3) % 20), 1000);
    auto bytes = pack_ids(ids);
    for (uint64_t flips = 0; flips <= draw(seed, 4) % 3; ++flips) {
      bytes[draw(seed, 5 + flips) % bytes.size()] ^= std::byte(1 << (draw(seed, 9 + flips) % 8));
    }
    const auto count = int64_t(ids.size() + draw(seed, 20) % 2);
    if (find_id_damage(bytes, count) != nullptr) continue;
    ++accepted;
    const auto decoded = PackedIds(bytes, count).decode();
    for (size_t i = 0; i < decoded.size(); ++i) {
      ASSERT_GE(decoded[i], 0);
      ASSERT_EQ(PackedIds(bytes, count)[int64_t(i)], decoded[i]);
      if (i > 0) ASSERT_GT(decoded[i], decoded[i - 1]);
    }
  }
  EXPECT_GT(accepted, 100);
  EXPECT_LT(accepted, 19'000);
}

}  // namespace
}  // namespace tessera::lattice
