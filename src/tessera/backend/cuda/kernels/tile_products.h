// Products of tiles in shared memory by the tensor cores, as text for kernels of half types.
//
// A tile has R rows of COLUMNS(n) columns: panels of 64 columns one behind the other, R rows of 128
// bytes each. The 16-byte chunks of a row stand where row % 8 puts them, so that reading along rows
// and across them takes every bank once, and as wgmma's 128-byte swizzle wants them. Tiles start at
// multiples of 1,024 bytes.
//
// Each warp of a group has 16 rows of a result; four warps in a row belong together. Of a result
// d[N / 8][4] a lane has, of each 8 columns j, (row, column) = (lane / 4 + 8 * (i / 2),
// 8 * j + lane % 4 * 2 + i % 2). The same numbers rounded and packed, two in a word, are the rows
// of the next product.
#pragma once

#include <string>

#include "tessera/base/dtype.h"

namespace tessera::cuda {

// The text for a half type. It needs LANES, and the words LOAD and STORE.
//
//   COLUMNS(n)                        n, or the columns a tile has for it
//   u32 pack(f32 low, f32 high)
//   f32 power_of_two(f32 x)           2 to the x
//   fetch_tile<R, C>(tile, rows, step, first, end)   starts copies of rows first … first + R of C
//                                     columns, 0 from row `end` and column C on
//   fetch_word(to, from, inside)      the same for 4 bytes
//   end_fetches()                     what was fetched since the last such call belongs together
//   wait_fetches<N>()                 until at most the last N of those are under way; by all lanes
//   across<N, K, RA, RB>(d, a, b)     starts d = a bᵀ: the group's rows of a (RA, K), b (RB >= N,
//   K) along<N, K, RB>(d, a, b)          starts d += a b: a in registers, b (RB >= K, N)
//   wait_products<N>(d)               until at most the last N products are under way, d not one of
//                                     them; before that neither d nor an `a` may be touched
//
// All lanes have waited for each other between wait_fetches and a product, and between a product
// and what overwrites its tiles. Four warps that belong together start products together.
std::string tile_products_text(DType dtype);

}  // namespace tessera::cuda
