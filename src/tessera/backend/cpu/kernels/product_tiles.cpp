#include "tessera/backend/cpu/kernels/product_tiles.h"

#include <algorithm>
#include <cstring>

#include "tessera/backend/cpu/isa.h"

namespace tessera::cpu {

namespace {

// Where the ways of computing cross over (bench/gemm.cpp).
constexpr int64_t kFewTiles = 8;   // of rows: up to here, b is read where it lies
constexpr int64_t kFewPanels = 8;  // of columns, side by side: the same
// Of the second-level cache's size: a b of more lies beyond a core's caches, or beyond all.
constexpr int64_t kBeyond = 4, kFar = 16;
// Depth of blocks of a far b where a is one tile high, two, or more.
constexpr int64_t kFarDepth = 16, kFarDepthOfTwo = 32, kFarDepthOfTiles = 128;
constexpr int64_t kFewColumns = 256;    // up to here, columns of a are read where they lie
constexpr int64_t kFewDotRows = 64;     // up to here, dot products beat packing a transposed b
constexpr int64_t kWorthDots = 64;      // terms of a dot product
constexpr int64_t kWorthSwapping = 32;  // terms of a sum, where c^T = b^T a^T has better tiles

}  // namespace

template <class T>
ProductTiles<T>::ProductTiles(const Product& p, const GemmLoops<T>& loops, Storage storage)
    : p_(p),
      loops_(loops),
      load_(cpu::loops().load[int(storage)]),
      store_(cpu::loops().store[int(storage)]),
      size_(size_of(p.dtype)),
      plain_(storage == Storage::bytes4 || storage == Storage::bytes8),
      // One whole vector of columns is a good tile, where a's rows need no packing.
      swapped_(p.n <= loops.lanes - (p.a_column == 1 ? 1 : 0) && p.m > p.n &&
               p.k >= kWorthSwapping) {
  if (swapped_) p_ = transposed(p_);
  if (p_.m == 1) p_.a_row = 1;
  if (p_.k == 1) p_.a_column = p_.b_row = 1;
  if (p_.n == 1) p_.b_column = 1;
}

template <class T>
void ProductTiles<T>::plan(const ProductShape& s) {
  blocks_ = choose_blocks(s);
  dots_ = plain_ && p_.b_row == 1 && (p_.b_column != 1 || p_.n == 1) && p_.m <= kFewDotRows &&
          p_.k >= std::max(kWorthDots, 8 * p_.m);
  const bool short_rows = p_.b_row > 0 && p_.b_row <= kFewPanels * loops_.columns;
  direct_b_ = plain_ && p_.b_column == 1 && (p_.m <= kFewTiles * loops_.rows || short_rows);
  const int64_t b_bytes = p_.k * p_.n * size_, cache = cache_sizes().second;
  beyond_b_ = direct_b_ && !short_rows && b_bytes > kBeyond * cache;
  far_b_ = beyond_b_ && b_bytes > kFar * cache;
  if (far_b_) {
    const int64_t tiles = divide_up(p_.m, loops_.rows);
    const int64_t deepest = tiles == 1 ? kFarDepth : tiles == 2 ? kFarDepthOfTwo : kFarDepthOfTiles;
    blocks_.depth = std::min(deepest, blocks_.depth);
  }
  gapless_b_ = direct_b_ && short_rows && p_.b_row == p_.n;
  direct_c_ = plain_ && p_.c_column == 1;
  direct_rows_ = plain_ && p_.a_column == 1;
  direct_columns_ = plain_ && p_.a_row == 1 && p_.n <= kFewColumns;
}

template <class T>
bool ProductTiles<T>::streams_b() const {
  return far_b_ && p_.m <= kFewGemmRows;
}

// What comes from memory is asked for two panels before, unless so many lines would drive each
// other out of the first-level cache.
template <class T>
int64_t ProductTiles<T>::panels_ahead() const {
  if (far_b_) return rows_collide(p_) ? 1 : 2;
  return beyond_b_ && p_.m > loops_.rows ? 1 : 0;
}

template <class T>
bool ProductTiles<T>::reads_rows_ahead() const {
  return beyond_b_ && panels_ahead() == 0;
}

template <class T>
int64_t ProductTiles<T>::direct_width(int64_t rows, int64_t rest) const {
  const int64_t lanes = loops_.lanes;
  const int64_t most = tile_height(rows) == rows ? loops_.widest[rows - 1] : loops_.vectors;
  const int64_t whole = loops_.reads_exactly ? divide_up(rest, lanes) : rest / lanes;
  const int64_t vectors = whole >= most ? most : std::min<int64_t>(whole, loops_.vectors);
  return vectors == 0 ? rest : std::min(rest, vectors * lanes);
}

template <class T>
void ProductTiles<T>::multiply(const Left<T>& left, int64_t rows, GemmTile<T> tile) const {
  const int64_t height = tile_height(rows), vectors = divide_up(tile.width, loops_.lanes);
  const auto& kernels = left.by_rows ? loops_.by_rows : loops_.by_columns;
  tile.a_step = left.step;
  // Tiles share what is to be fetched: one alone could ask for more than is under way.
  const int64_t wanted = tile.ahead_all > 0 ? tile.ahead_all : vectors;
  const int64_t share = divide_up(wanted, divide_up(rows, height));
  if (tile.ahead != nullptr) tile.ahead_vectors = share;
  if (tile.ahead_run > 0) tile.ahead_step = share * loops_.lanes;
  tile.a = left.at;
  for (int64_t i = 0, fetched = 0; i < rows; i += height) {
    kernels[std::min(height, rows - i) - 1][vectors - 1](tile);
    tile.a += left.tile_step;
    tile.c += height * tile.c_step;
    if (tile.ahead_vectors == 0) continue;
    fetched += share;
    tile.ahead += tile.ahead_run > 0 ? share * tile.ahead_run : share * loops_.lanes;
    tile.ahead_vectors = std::min(share, std::max<int64_t>(0, wanted - fetched));
  }
}

template <class T>
Left<T> ProductTiles<T>::left_panels(T* to, int64_t row, int64_t rows, int64_t k0,
                                     int64_t depth) const {
  const int64_t height = tile_height(rows);
  if (direct_rows_) return {a_at(row, k0), p_.a_row, height * p_.a_row, true};
  if (direct_columns_) return {a_at(row, k0), p_.a_column, height, false};
  const Left<T> left = {to, loops_.rows, loops_.rows * depth, false};
  if (plain_ && p_.a_row == 1) {
    // Rows behind the last do no harm, and whole tiles are faster to copy.
    const int64_t length = std::min(round_up(rows, height) + loops_.rows - height, p_.m - row);
    loops_.copy_a({to, a_at(row, k0), p_.a_column, depth, length, height});
    return left;
  }
  for (int64_t i = 0; i < rows; i += height, to += left.tile_step) {
    const int64_t count = std::min<int64_t>(loops_.rows, p_.m - row - i);
    load_(to, p_.a + ((row + i) * p_.a_row + k0 * p_.a_column) * size_,
          {depth, count, loops_.rows, 1, p_.a_column, p_.a_row});
  }
  return left;
}

template <class T>
void ProductTiles<T>::pack_b(T* to, int64_t column, int64_t k0, int64_t depth) const {
  const int64_t width = std::min<int64_t>(loops_.columns, p_.n - column);
  const T* from = b_at(k0, column);
  if (plain_ && p_.b_column == 1) {
    return loops_.copy_b({to, from, p_.b_row, depth, width, loops_.columns});
  }
  if (plain_ && p_.b_row == 1) {
    return loops_.transpose_b({to, from, p_.b_column, width, depth, 0});
  }
  if (width < loops_.columns) std::memset(to, 0, size_t(depth * loops_.columns) * sizeof(T));
  load_(to, p_.b + (k0 * p_.b_row + column * p_.b_column) * size_,
        {depth, width, loops_.columns, 1, p_.b_row, p_.b_column});
}

template class ProductTiles<float>;
template class ProductTiles<double>;

}  // namespace tessera::cpu
