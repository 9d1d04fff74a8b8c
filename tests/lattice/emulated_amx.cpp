// The AMX kernel, compiled for any processor over tiles that are plain arrays: its packing, strides
// and epilogue are tested where the instructions are missing.
#include "emulated_amx.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "tessera/base/error.h"
#include "tessera/base/half.h"

#pragma GCC diagnostic ignored "-Wpsabi"

namespace {

struct Tile {
  uint8_t rows[16][64];
};
thread_local Tile tiles[8];
thread_local bool configured = false;

void emulated_load(int tile, const void* from, int64_t step) {
  TESSERA_ASSERT(configured);
  for (int i = 0; i < 16; ++i) {
    std::memcpy(tiles[tile].rows[i], static_cast<const char*>(from) + i * step, 64);
  }
}

void emulated_store(int tile, void* to, int64_t step) {
  for (int i = 0; i < 16; ++i) {
    std::memcpy(static_cast<char*>(to) + i * step, tiles[tile].rows[i], 64);
  }
}

// c[i][j] += Σ_k a[i][2k] b[k][2j] + a[i][2k + 1] b[k][2j + 1].
void emulated_multiply(int c, int a, int b) {
  for (int i = 0; i < 16; ++i) {
    float sums[16];
    uint16_t left[32], right[32];
    std::memcpy(sums, tiles[c].rows[i], sizeof sums);
    std::memcpy(left, tiles[a].rows[i], sizeof left);
    for (int k = 0; k < 16; ++k) {
      std::memcpy(right, tiles[b].rows[k], sizeof right);
      for (int j = 0; j < 16; ++j) {
        for (int half = 0; half < 2; ++half) {
          sums[j] += tessera::detail::bf16_to_float(left[2 * k + half]) *
                     tessera::detail::bf16_to_float(right[2 * j + half]);
        }
      }
    }
    std::memcpy(tiles[c].rows[i], sums, sizeof sums);
  }
}

}  // namespace

#undef _tile_loadconfig
#undef _tile_release
#undef _tile_loadd
#undef _tile_stored
#undef _tile_dpbf16ps
#define _tile_loadconfig(config) configured = (config)->palette == 1
#define _tile_release() configured = false
#define _tile_loadd emulated_load
#define _tile_stored emulated_store
#define _tile_dpbf16ps emulated_multiply
#if !defined(__AMX_BF16__)
#define __AMX_BF16__ 1
#endif
#define TESSERA_SIMD_NAME emulated_amx
#include "tessera/lattice/simd/nearest_bf16.cpp"

namespace tessera::lattice {

const NearestKernel* emulated_amx() { return &kNearest_emulated_amx; }

}  // namespace tessera::lattice

#else

namespace tessera::lattice {

const NearestKernel* emulated_amx() { return nullptr; }

}  // namespace tessera::lattice

#endif
