// One product of floats as its tiles see it: where its operands lie, which of them are packed and
// how, and rows of a times a panel of b. How c is cut into tasks is not decided here.
#pragma once

#include "tessera/backend/cpu/gemm.h"
#include "tessera/backend/cpu/kernels/product.h"
#include "tessera/backend/cpu/kernels/product_blocks.h"
#include "tessera/backend/cpu/loops.h"

namespace tessera::cpu {

// Rows of a as the kernels take them.
template <class T>
struct Left {
  const T* at;
  int64_t step;       // GemmTile::a_step
  int64_t tile_step;  // from a tile's first element to the next one's
  bool by_rows;
};

// T: float or double, what sums are made in.
template <class T>
class ProductTiles {
 protected:
  // May turn the product into that of the transposes.
  ProductTiles(const Product& p, const GemmLoops<T>& loops, Storage storage);

  ProductShape shape() const {
    return {p_.m, p_.n, p_.k, loops_.rows, loops_.columns, int64_t(sizeof(T)), loops_.lanes};
  }

  // Sets all that is declared below `swapped_`: a function of the product's shape and strides, for
  // it decides how elements are summed.
  void plan(const ProductShape& s);

  const T* a_at(int64_t i, int64_t k) const {
    return reinterpret_cast<const T*>(p_.a) + i * p_.a_row + k * p_.a_column;
  }
  const T* b_at(int64_t k, int64_t j) const {
    return reinterpret_cast<const T*>(p_.b) + k * p_.b_row + j * p_.b_column;
  }
  char* c_at(int64_t i, int64_t j) const { return p_.c + (i * p_.c_row + j * p_.c_column) * size_; }

  // How a b that lies beyond a core's caches is read where it lies: its rows are walked, with all
  // of c's few; or in strips, while the panel so many behind is fetched; or rows below are fetched.
  bool streams_b() const;
  int64_t panels_ahead() const;
  bool reads_rows_ahead() const;

  // Of the next panel, when `rest` columns are left: whole vectors unless kernels read exactly.
  int64_t direct_width(int64_t rows, int64_t rest) const;

  // All rows of `left` times the panel of b in `tile`.
  void multiply(const Left<T>& left, int64_t rows, GemmTile<T> tile) const;

  // Rows [row, row + rows) of a, k in [k0, k0 + depth), packed into `to` unless they can be read
  // where they lie.
  Left<T> left_panels(T* to, int64_t row, int64_t rows, int64_t k0, int64_t depth) const;
  bool packs_rows() const { return !direct_rows_ && !direct_columns_; }

  // A panel of b from `column` on as [depth][loops_.columns], with zeros behind the last column
  // where kernels read them.
  void pack_b(T* to, int64_t column, int64_t k0, int64_t depth) const;

  Product p_;
  const GemmLoops<T>& loops_;
  MoveLoop load_, store_;
  int size_;
  bool plain_;    // elements are in memory what they are in registers
  bool swapped_;  // c is the transposed one

  Blocks blocks_ = {};
  bool dots_ = false;
  bool direct_b_ = false, direct_c_ = false;
  bool gapless_b_ = false;  // short rows, one behind the other
  bool beyond_b_ = false, far_b_ = false;
  bool direct_rows_ = false, direct_columns_ = false;  // of a

 private:
  // Of the tiles that `rows` are cut into: even ones, because one of a row or two would keep few of
  // the adders busy.
  int64_t tile_height(int64_t rows) const { return divide_up(rows, divide_up(rows, loops_.rows)); }
};

}  // namespace tessera::cpu
