#include "tessera/lattice/id_codec.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "tessera/base/error.h"

namespace tessera::lattice {

namespace {

constexpr size_t kPrefix = 9;
constexpr int kMaxLowBits = 56;  // with a shift of up to 7 they fit a word of 64
constexpr int64_t kMaxId = std::numeric_limits<int64_t>::max();

// Up to 8 bytes from `at` on; those past the end are 0.
uint64_t load(std::span<const std::byte> bytes, size_t at) {
  uint64_t word = 0;
  std::memcpy(&word, bytes.data() + at, std::min<size_t>(8, bytes.size() - at));
  return word;
}

// (count * bits) / 8, rounded up, without the overflow.
int64_t low_bytes(int64_t count, int bits) { return count / 8 * bits + (count % 8 * bits + 7) / 8; }

int choose_low_bits(int64_t range, int64_t count) {
  return std::min(kMaxLowBits, int(std::bit_width(uint64_t(range / count) | 1)) - 1);
}

// Calls found(i, high) for the i-th 1 of `high`, in order, until one returns false.
template <class F>
void for_each_one(std::span<const std::byte> high, F&& found) {
  int64_t i = 0;
  for (size_t at = 0; at < high.size(); at += 8) {
    for (uint64_t word = load(high, at); word != 0; word &= word - 1) {
      if (!found(i, int64_t(8 * at) + std::countr_zero(word) - i)) return;
      ++i;
    }
  }
}

}  // namespace

std::vector<std::byte> pack_ids(std::span<const int64_t> ids) {
  TESSERA_ASSERT(!ids.empty() && ids[0] >= 0);
  const auto count = int64_t(ids.size());
  const int64_t range = ids.back() - ids[0];
  const int bits = choose_low_bits(range, count);
  const size_t high_at = kPrefix + size_t(low_bytes(count, bits));
  const size_t size = high_at + size_t((count + (range >> bits) + 7) / 8);
  std::vector<std::byte> bytes(size + 8);  // low bits are put in by words, the last of which ends
                                           // behind them
  std::memcpy(bytes.data(), ids.data(), 8);
  bytes[8] = std::byte(bits);
  for (int64_t i = 0; i < count; ++i) {
    TESSERA_ASSERT(i == 0 || ids[size_t(i)] > ids[size_t(i) - 1]);
    const auto offset = uint64_t(ids[size_t(i)] - ids[0]);
    std::byte* at = bytes.data() + kPrefix + i * bits / 8;
    uint64_t word = 0;
    std::memcpy(&word, at, 8);
    word |= (offset & ((uint64_t(1) << bits) - 1)) << (i * bits % 8);
    std::memcpy(at, &word, 8);
    const int64_t one = i + int64_t(offset >> bits);
    bytes[high_at + size_t(one / 8)] |= std::byte(1 << (one % 8));
  }
  bytes.resize(size);
  return bytes;
}

const char* find_id_damage(std::span<const std::byte> bytes, int64_t count) {
  if (bytes.size() < kPrefix) return "its ids are cut short";
  int64_t first = 0;
  std::memcpy(&first, bytes.data(), 8);
  const int bits = int(bytes[8]);
  if (first < 0) return "its first id is negative";
  if (bits > kMaxLowBits) return "its ids have more than 56 low bits";
  // Each id has a bit in `high`: a larger count cannot be true, and need not be multiplied.
  if (count <= 0 || count > 8 * int64_t(bytes.size())) return "its ids are cut short";
  const int64_t low = low_bytes(count, bits);
  if (low > int64_t(bytes.size() - kPrefix)) return "its ids are cut short";

  const auto lows = bytes.subspan(kPrefix, size_t(low));
  const auto highs = bytes.subspan(kPrefix + size_t(low));
  const uint64_t mask = (uint64_t(1) << bits) - 1;
  int64_t ones = 0, last = -1;
  const char* damage = nullptr;
  for_each_one(highs, [&](int64_t i, int64_t high) {
    ones = i + 1;
    if (ones > count) return false;
    const uint64_t rest =
        bits == 0 ? 0 : (load(lows, size_t(i * bits / 8)) >> (i * bits % 8)) & mask;
    if (high > (kMaxId - first) >> bits) damage = "its ids exceed 2^63 - 1";
    const auto offset = damage ? 0 : int64_t(uint64_t(high) << bits | rest);
    if (!damage && offset > kMaxId - first) damage = "its ids exceed 2^63 - 1";
    if (!damage && offset <= last) damage = "its ids are out of order";
    last = offset;
    return damage == nullptr;
  });
  if (damage == nullptr && ones != count) damage = "its ids are not as many as it says";
  return damage;
}

PackedIds::PackedIds(std::span<const std::byte> bytes, int64_t count) : count_(count) {
  if (count == 0) return;
  std::memcpy(&first_, bytes.data(), 8);
  low_bits_ = int(bytes[8]);
  const auto low = size_t(low_bytes(count, low_bits_));
  low_ = bytes.subspan(kPrefix, low);
  high_ = bytes.subspan(kPrefix + low);
}

int64_t PackedIds::value(int64_t i, int64_t high) const {
  if (low_bits_ == 0) return first_ + high;
  const int64_t bit = i * low_bits_;
  const uint64_t low =
      (load(low_, size_t(bit / 8)) >> (bit % 8)) & ((uint64_t(1) << low_bits_) - 1);
  return first_ + int64_t(uint64_t(high) << low_bits_ | low);
}

int64_t PackedIds::operator[](int64_t i) const {
  TESSERA_ASSERT(0 <= i && i < count_);
  int64_t before = 0;  // ones in the words before `at`
  size_t at = 0;
  uint64_t word = load(high_, at);
  for (int ones = std::popcount(word); before + ones <= i; ones = std::popcount(word)) {
    before += ones;
    at += 8;
    word = load(high_, at);
  }
  for (; before < i; ++before) word &= word - 1;
  return value(i, int64_t(8 * at) + std::countr_zero(word) - i);
}

std::optional<int64_t> PackedIds::find(int64_t id) const {
  int64_t begin = 0, end = count_;
  while (begin < end) {
    const int64_t middle = begin + (end - begin) / 2;
    const int64_t found = (*this)[middle];
    if (found == id) return middle;
    (found < id ? begin : end) = found < id ? middle + 1 : middle;
  }
  return std::nullopt;
}

void PackedIds::decode(std::span<int64_t> ids) const {
  TESSERA_ASSERT(int64_t(ids.size()) == count_);
  for_each_one(high_, [&](int64_t i, int64_t high) {
    ids[size_t(i)] = value(i, high);
    return true;
  });
}

std::vector<int64_t> PackedIds::decode() const {
  std::vector<int64_t> ids(static_cast<size_t>(count_));
  decode(ids);
  return ids;
}

}  // namespace tessera::lattice
