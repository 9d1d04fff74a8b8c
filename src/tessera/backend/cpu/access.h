// Moving tiles between operands and registers: strides, masks and indices.
#pragma once

#include "tessera/backend/cpu/tile.h"

namespace tessera::cpu {

// A register as a source inside a tile: element (i, j) of (slow, fast) lies at i * slow + j * fast.
struct RegisterSource {
  const char* at = nullptr;
  int64_t slow = 0, fast = 0;
};

struct LoadRegisters {
  RegisterSource fill;   // masked loads
  RegisterSource index;  // indexed loads
};

// The tile's elements in memory, where they lie there just as a register would hold them.
const char* find_in_place(const Workspace& work, const Access& access, const Tile& tile);

// Writes the tile into the register at `to`, whose values have `size` bytes.
void load_tile(const Workspace& work, const Access& access, const Tile& tile, char* to, int size,
               const LoadRegisters& registers);

void store_tile(const Workspace& work, const Access& access, const Tile& tile, const char* from,
                int size, int64_t slow, int64_t fast);

// offset + Σ coordinate · strides
void index_tile(const Workspace& work, const Access& access, const Tile& tile, int64_t* to);

}  // namespace tessera::cpu
