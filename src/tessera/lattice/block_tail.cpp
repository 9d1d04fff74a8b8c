#include "tessera/lattice/block_tail.h"

#include <algorithm>
#include <cstring>

#include "tessera/lattice/block_packer.h"

namespace tessera::lattice {

namespace {

constexpr int64_t kRegister = 64, kHalf = 16;        // bytes; vectors
constexpr int64_t kFactors = 2 * kBlockVectors * 2;  // bytes of a block
constexpr int64_t kPair = 2 * kRegister;             // a register of both halves

// Bytes of the part of a block that lies in rows come behind these.
int64_t hot_part(TailLayout layout) { return uint32_t(layout) & ~uint32_t(kRegister - 1); }
TailLayout kind_of(TailLayout layout) {
  return TailLayout(uint32_t(layout) & uint32_t(kRegister - 1));
}

// Calls run(offset in the block, bytes) for what belongs to the first `count` slots, in order.
template <class Run>
void each_run(TailLayout layout, int64_t block_bytes, int64_t count, const Run& run) {
  if (layout == TailLayout::rows) {
    run(0, count * (block_bytes / kBlockVectors));
    return;
  }
  if (kind_of(layout) == TailLayout::planes) {
    const int64_t hot = hot_part(layout);
    each_run(TailLayout::registers, hot, count, run);
    run(hot, count * ((block_bytes - hot) / kBlockVectors));
    return;
  }
  const int64_t half_bytes = (block_bytes - kFactors) / 2;
  for (int64_t half = 0; half < 2; ++half) {
    const int64_t vectors = std::clamp<int64_t>(count - kHalf * half, 0, kHalf);
    for (int64_t at = 0; at < half_bytes; at += kRegister) run(half * half_bytes + at, 4 * vectors);
  }
  for (const int64_t at : {2 * half_bytes, 2 * half_bytes + kFactors / 2}) run(at, 2 * count);
}

int64_t tail_count(TailLayout layout, int64_t count) {
  return layout == TailLayout::padded ? 0 : count % kBlockVectors;
}

}  // namespace

bool is_layout_of(TailLayout layout, int64_t block_bytes) {
  const int64_t hot = hot_part(layout);
  if (hot > 0 && kind_of(layout) != TailLayout::planes) return false;
  switch (kind_of(layout)) {
    case TailLayout::padded: return true;
    case TailLayout::rows: return block_bytes % kBlockVectors == 0;
    case TailLayout::registers: return block_bytes % kPair == 0;
    case TailLayout::planes:
      return hot >= kFactors && hot % kPair == 0 && hot <= block_bytes &&
             block_bytes % kRegister == 0;
  }
  return false;
}

int64_t whole_blocks(TailLayout layout, int64_t count) {
  return layout == TailLayout::padded ? blocks_for(count) : count / kBlockVectors;
}

int64_t stored_bytes(TailLayout layout, int64_t count, int64_t block_bytes) {
  return whole_blocks(layout, count) * block_bytes +
         tail_count(layout, count) * (block_bytes / kBlockVectors);
}

void shorten_block(TailLayout layout, const std::byte* block, int64_t block_bytes, int64_t count,
                   std::byte* stored) {
  each_run(layout, block_bytes, count, [&](int64_t at, int64_t bytes) {
    if (bytes > 0) std::memcpy(stored, block + at, size_t(bytes));
    stored += bytes;
  });
}

void restore_block(TailLayout layout, const std::byte* stored, int64_t block_bytes, int64_t count,
                   std::byte* block) {
  each_run(layout, block_bytes, count, [&](int64_t at, int64_t bytes) {
    if (bytes > 0) std::memcpy(block + at, stored, size_t(bytes));
    stored += bytes;
  });
}

}  // namespace tessera::lattice
