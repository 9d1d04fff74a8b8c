// The last block of a list as an index file keeps it, where fewer than 32 vectors are left for it:
// the bytes of the slots that hold none are left out. Which bytes those are depends on how a block
// is laid out.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tessera::lattice {

enum class TailLayout : uint32_t {
  padded,     // nothing is left out
  rows,       // a vector's bytes lie together: PlainPacker's blocks
  registers,  // code_layout.h: two halves of registers of 16 × 4 bytes, then 2 × 32 f16
  planes,     // plus the bytes of the hot part, a multiple of 64: that as registers, then rows
};

// REQUIRES: hot_bytes is a multiple of 64.
constexpr TailLayout planes_layout(int64_t hot_bytes) {
  return TailLayout(uint32_t(TailLayout::planes) + uint32_t(hot_bytes));
}

// Whether there is such a layout, and blocks of that many bytes can be laid out so.
bool is_layout_of(TailLayout layout, int64_t block_bytes);

// Blocks of `count` vectors that a file keeps whole.
int64_t whole_blocks(TailLayout layout, int64_t count);

// Bytes of `count` vectors in a file. REQUIRES: blocks_for(count) · block_bytes does not overflow.
int64_t stored_bytes(TailLayout layout, int64_t count, int64_t block_bytes);

// From a block with `count` vectors, 1 to 31, to what is kept of it, and back: `block` was zero.
void shorten_block(TailLayout layout, const std::byte* block, int64_t block_bytes, int64_t count,
                   std::byte* stored);
void restore_block(TailLayout layout, const std::byte* stored, int64_t block_bytes, int64_t count,
                   std::byte* block);

}  // namespace tessera::lattice
