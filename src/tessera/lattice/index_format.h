// The structures of an index file as they lie in it; docs/formats/index.md is the specification.
// Numbers are little-endian, offsets count from the start of the file.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "tessera/io/checksum.h"

namespace tessera::lattice {

static_assert(std::endian::native == std::endian::little, "files hold the structs as they are");

inline constexpr uint32_t kIndexVersion = 3;
inline constexpr int64_t kAlignment = 64;  // of sections, segments and lists
// A sector holds one thing: a write that a power failure cuts short damages that thing alone.
inline constexpr int64_t kSector = 512;
inline constexpr int kRecords = 4;  // slots 0 and 1, then the second copies of both
inline constexpr int64_t kFixedBytes = (1 + kRecords) * kSector;

struct Preamble {  // at byte 0
  char magic[8] = {'T', 'E', 'S', 'S', 'I', 'D', 'X', '\n'};
  uint32_t version = kIndexVersion;
  uint32_t dim = 0;
  uint32_t cells = 0;
  uint32_t metric = 0;
  int64_t block_bytes = 0;
  int64_t head_end = 0;       // where the last section ends
  uint32_t sections = 0;      // rows of the section table, which begins at kFixedBytes
  uint32_t sections_sum = 0;  // CRC-32C of the section table
  uint32_t tail = 0;          // how the last block of a list is kept: block_tail.h
  uint32_t half_anchors = 0;  // 1: anchors are f16
  uint32_t zero = 0;
  uint32_t sum = 0;  // CRC-32C of what is before it; so in the other structs
};
static_assert(sizeof(Preamble) == 64);

struct CommitRecord {  // at byte kSector * (1 + slot)
  char magic[8] = {'T', 'E', 'S', 'S', 'C', 'M', 'T', '\n'};
  uint64_t generation = 0;
  int64_t length = 0;  // where the committed bytes end
  int64_t footer = 0;  // of the newest segment; 0 when there is none
  uint32_t segments = 0;
  uint32_t footer_sum = 0;  // the `sum` of that footer
  uint32_t zero[5] = {};
  uint32_t sum = 0;
};
static_assert(sizeof(CommitRecord) == 64);

struct SectionRow {
  char name[24] = {};  // ends with at least one 0
  int64_t at = 0;
  int64_t bytes = 0;
  uint32_t data_sum = 0;
  uint32_t zero = 0;
};
static_assert(sizeof(SectionRow) == 48);

struct ListRow {  // a row of a segment's directory
  uint32_t cell = 0;
  uint32_t count = 0;
  int64_t blocks_at = 0;
  int64_t ids_at = 0;  // all ids lie together, so that to look one up is not to read the blocks
  int64_t id_bytes = 0;
  uint32_t blocks_sum = 0;
  uint32_t ids_sum = 0;
};
static_assert(sizeof(ListRow) == 40);

struct SegmentFooter {  // the last bytes of a segment
  char magic[8] = {'T', 'E', 'S', 'S', 'S', 'E', 'G', '\n'};
  int64_t begin = 0;  // of the segment
  int64_t dead_at = 0;
  int64_t dead_bytes = 0;
  int64_t dead = 0;     // ids that this segment deletes from those before it
  int64_t rows_at = 0;  // the directory
  int64_t rows = 0;     // lists
  int64_t vectors = 0;  // in all lists
  int64_t min_id = 0;   // of all lists
  int64_t max_id = -1;
  int64_t previous = 0;  // footer of the segment before; 0 in the first
  uint32_t previous_sum = 0;
  uint32_t number = 0;  // segments before this one
  uint32_t dead_sum = 0;
  uint32_t rows_sum = 0;
  uint32_t zero = 0;
  uint32_t sum = 0;
};
static_assert(sizeof(SegmentFooter) == 112);

inline int64_t align_up(int64_t at) { return (at + kAlignment - 1) / kAlignment * kAlignment; }

// The bytes of a record: slot 0…3 as laid out above.
inline int64_t record_at(int slot) { return kSector * (1 + slot); }

template <class T>
std::span<const std::byte> bytes_of_struct(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

template <class T>
uint32_t sum_of(const T& value) {
  return crc32c(bytes_of_struct(value).first(offsetof(T, sum)));
}

// REQUIRES: at least sizeof(T) bytes.
template <class T>
T read_struct(std::span<const std::byte> bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof(T));
  return value;
}

// Whether a struct begins as its kind does and its checksum is right.
template <class T>
bool is_intact(const T& value) {
  return std::memcmp(value.magic, T().magic, sizeof(value.magic)) == 0 &&
         value.sum == sum_of(value);
}

}  // namespace tessera::lattice
