// What sort and topk work on: an element as an unsigned key in the order of its type, with its
// place. Entries are never equal, so any way of sorting them is stable and gives the same result.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "tessera/base/dtype.h"
#include "tessera/kernel/view.h"

namespace tessera::cpu {

// Of a floating type's bits; `infinity` are those of inf. NaN is the greatest, and -0 equals 0.
template <class U>
U real_key(U bits, U infinity) {
  constexpr U kSign = U(U(1) << (8 * sizeof(U) - 1));
  const U magnitude = U(bits & U(~kSign));
  if (magnitude > infinity) return std::numeric_limits<U>::max();
  if (magnitude == 0) return kSign;
  return (bits & kSign) != 0 ? U(~bits) : U(bits | kSign);
}

template <class T>
auto key_of(T value) {
  if constexpr (std::is_same_v<T, bool>) {
    return uint8_t(value);
  } else if constexpr (std::is_same_v<T, float>) {
    return real_key(std::bit_cast<uint32_t>(value), uint32_t(0x7f800000u));
  } else if constexpr (std::is_same_v<T, double>) {
    return real_key(std::bit_cast<uint64_t>(value), uint64_t(0x7ff0000000000000u));
  } else if constexpr (std::is_same_v<T, f16>) {
    return real_key(value.bits, uint16_t(0x7c00u));
  } else if constexpr (std::is_same_v<T, bf16>) {
    return real_key(value.bits, uint16_t(0x7f80u));
  } else {
    using U = std::make_unsigned_t<T>;
    constexpr U kFlip = std::is_signed_v<T> ? U(U(1) << (8 * sizeof(U) - 1)) : U(0);
    return U(U(value) ^ kFlip);
  }
}

// Keys of up to 32 bits and places below 2^32, in one word.
struct NarrowEntry {
  uint64_t word;

  static NarrowEntry make(uint32_t key, int64_t place) {
    return {uint64_t(key) << 32 | uint64_t(place)};
  }
  uint64_t key() const { return word >> 32; }
  int64_t place() const { return int64_t(word & 0xffffffffu); }
  bool operator<(const NarrowEntry& other) const { return word < other.word; }
};

struct WideEntry {
  uint64_t word;
  int64_t at;

  static WideEntry make(uint64_t key, int64_t place) { return {key, place}; }
  uint64_t key() const { return word; }
  int64_t place() const { return at; }
  bool operator<(const WideEntry& other) const {
    return word != other.word ? word < other.word : at < other.at;
  }
};

inline constexpr int64_t kMostNarrow = int64_t(1) << 32;  // elements of a row

// Calls f.template operator()<T, E>() with the element type and the smaller entry that will do.
template <class F>
void visit_entries(DType dtype, int64_t columns, F f) {
  visit(dtype, [&]<class T>() {
    if (sizeof(T) <= 4 && columns <= kMostNarrow) {
      f.template operator()<T, NarrowEntry>();
    } else {
      f.template operator()<T, WideEntry>();
    }
  });
}

// The elements of one row as entries, the first of the order first.
template <class T, class E>
struct RowEntries {
  const T* x;
  int64_t step;
  bool descending;

  E operator[](int64_t i) const {
    const auto key = key_of(x[i * step]);
    return E::make(descending ? decltype(key)(~key) : key, i);
  }
};

// The first element of row `row`, counted row-major over all axes but the last.
inline int64_t row_start(const View& view, int64_t row) {
  int64_t start = view.offset;
  for (int d = view.shape.rank() - 2; d >= 0; --d) {
    start += row % view.shape[d] * view.strides[d];
    row /= view.shape[d];
  }
  return start;
}

// Sorts; `room` holds as many. `key_bytes` of the key are used, from the lowest. REQUIRES places in
// rising order: it is the keys that are sorted, and equal ones stay as they are.
template <class E>
void sort_entries(E* entries, E* room, int64_t n, int key_bytes);

extern template void sort_entries(NarrowEntry*, NarrowEntry*, int64_t, int);
extern template void sort_entries(WideEntry*, WideEntry*, int64_t, int);

}  // namespace tessera::cpu
