// Where the bits of a code are. A block holds 32 vectors as two halves of 16, then their factors:
//
//   half 0 | half 1 | 32 f16 n2 | 32 f16 g
//
// A half holds the groups of 32 dimensions in order. A group of b bits takes b registers of 64
// bytes; b is split into pieces of 4, 2 and 1 bits, the most significant first (8 is one piece).
// In a register of pieces of w bits, byte 4·v + i is vector v's, and bits [w·k, w·k + w) of it are
// the piece of dimension 4·(8/w·r + k) + i, r counting the piece's registers of the group: shifted
// and masked, it is 16 vectors × 4 dimensions of bytes, what dot-product instructions and tiles
// take. The last group ends with the last register that holds a dimension.
//
// With planes, a block holds the top bits as a block of 1 bit has them, with the factors n2 and
// hot, and behind that a row for each vector of what is left:
//
//   half 0 | half 1 | 32 f16 n2 | 32 f16 hot | row 0 | … | row 31
//
// A row holds the four bytes of its vector from each register of the other bits, in order, and g as
// f16. So a scan reads the top bits without the rest, and the rest of one vector is one or two
// cache lines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "tessera/lattice/code_spec.h"

namespace tessera::lattice {

int64_t block_bytes(const CodeSpec& spec);

// With planes, of the first part of a block and of a row; else 0.
int64_t hot_bytes(const CodeSpec& spec);
int64_t row_bytes(const CodeSpec& spec);

inline int64_t block_count(int64_t vectors) { return (vectors + kBlock - 1) / kBlock; }

// What is stored of one vector: the values after rounding to f16. `hot` is what g is to the whole
// code, to its top bits alone: n2 / <r, s ⊙ h>, h = ±2^(bits - 2) by the top bit; 0 without planes.
struct CodeFactors {
  float n2 = 0, g = 0, hot = 0;
};

// Puts a vector into `slot` (0…31) of a block, over whatever was there. codes: (padded_dim) as
// encode gives them. Threads may fill different slots of a block at once.
void pack_code(const CodeSpec& spec, std::byte* block, int slot, std::span<const uint8_t> codes,
               CodeFactors factors);

// Its inverse; dimensions past dim are 0.
CodeFactors unpack_code(const CodeSpec& spec, const std::byte* block, int slot,
                        std::span<uint8_t> codes);

// The nearest that can be stored; larger ones become the largest.
CodeFactors round_factors(const CodeSpec& spec, CodeFactors factors);

}  // namespace tessera::lattice
