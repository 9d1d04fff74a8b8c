#include "tessera/backend/cpu/kernels/sort_entries.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace tessera::cpu {

namespace {

constexpr int64_t kFew = 256;  // up to here, comparing beats counting
constexpr int kDigits = 256;

using Counts = std::array<int64_t, kDigits>;

template <class E>
int digit_of(const E& entry, int byte) {
  return int(entry.key() >> (8 * byte) & (kDigits - 1));
}

}  // namespace

// By the lowest byte first: each pass keeps the order of the one before.
template <class E>
void sort_entries(E* entries, E* room, int64_t n, int key_bytes) {
  if (n <= kFew) return std::sort(entries, entries + n);
  std::array<Counts, 8> counts{};
  for (int64_t i = 0; i < n; ++i) {
    for (int byte = 0; byte < key_bytes; ++byte) {
      ++counts[size_t(byte)][size_t(digit_of(entries[i], byte))];
    }
  }
  E *from = entries, *to = room;
  for (int byte = 0; byte < key_bytes; ++byte) {
    Counts& places = counts[size_t(byte)];
    if (places[size_t(digit_of(from[0], byte))] == n) continue;  // all alike
    int64_t next = 0;
    for (int64_t& place : places) {
      const int64_t count = place;
      place = next;
      next += count;
    }
    for (int64_t i = 0; i < n; ++i) to[places[size_t(digit_of(from[i], byte))]++] = from[i];
    std::swap(from, to);
  }
  if (from != entries) std::memcpy(entries, from, size_t(n) * sizeof(E));
}

template void sort_entries(NarrowEntry*, NarrowEntry*, int64_t, int);
template void sort_entries(WideEntry*, WideEntry*, int64_t, int);

}  // namespace tessera::cpu
