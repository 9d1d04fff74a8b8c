// The innermost part of matrix products, one table per instruction set (see loops.h).
#pragma once

#include <cstdint>

namespace tessera::cpu {

inline constexpr int kMaxGemmRows = 9;
inline constexpr int kMaxGemmVectors = 8;
inline constexpr int kFewGemmRows = 8;

// c[i * c_step + j] (+)= Σ_p a(i, p) · b[p * b_step + j] for i in [0, rows), j in [0, width), p in
// [0, k), each element in the order of p. `add`: to what c holds, else it is overwritten.
template <class T>
struct GemmTile {
  int64_t k;
  const T* a;
  int64_t a_step;
  const T* b;
  int64_t b_step;
  T* c;
  int64_t c_step;
  int64_t width;
  bool add;
  // Fetched meanwhile, because it is needed soon: the first `ahead_vectors` of k rows.
  const T* ahead;
  int64_t ahead_step;
  int64_t ahead_vectors;
  // Vectors of such a row that the tiles below each other fetch together; 0: as many as b's.
  int64_t ahead_all;
  // Where what they fetch is one run of memory, the elements of it that count as a vector of k
  // rows; 0: rows lie ahead_step apart.
  int64_t ahead_run;
  // Fetched into the second-level cache, little by little, for a later use: two lines of each of as
  // many rows as the tile has, `later_step` bytes apart. Null: nothing.
  const char* later;
  int64_t later_step;
};

// A block of `count` lines, each of `length` elements, from_step apart.
template <class T>
struct GemmPack {
  T* to;
  const T* from;
  int64_t from_step;
  int64_t count, length;
  int64_t tile;  // copies only: elements of a line that belong to one tile
};

// A few rows of c at once: c[i * c_step + j] = Σ_p a[i * a_row + p * a_column] · b[p * b_step + j]
// for i in [0, m), j in [0, width), p in [0, k), each element in the order of p.
template <class T>
struct GemmRows {
  int64_t m, k;  // m at most kFewGemmRows
  const T* a;
  int64_t a_row, a_column;
  const T* b;
  int64_t b_step;
  T* c;
  int64_t c_step;
  int64_t width;
};

template <class T>
struct GemmLoops {
  using Kernel = void (*)(const GemmTile<T>&);

  int rows, vectors;   // of the largest tile that packed operands are cut into
  int lanes;           // of a vector
  int columns;         // vectors * lanes
  bool reads_exactly;  // kernels read b up to `width`; else to the end of its last vector

  // [rows - 1]: the most vectors a tile of so many rows may have.
  int widest[kMaxGemmRows];

  // [rows - 1][vectors - 1], for vectors up to `vectors` and for the widest; width in
  // ((vectors - 1) * lanes, vectors * lanes].
  Kernel by_columns[kMaxGemmRows][kMaxGemmVectors];  // a(i, p) = a[p * a_step + i]
  Kernel by_rows[kMaxGemmRows][kMaxGemmVectors];     // a(i, p) = a[i * a_step + p]

  // Tile by tile: to[l * columns + e] = from[l * from_step + e], and zeros behind the last e where
  // kernels read them; the next tile lies count * columns further. Where `length` allows, whole
  // tiles of `columns` elements are copied, although only the first `tile` of them count.
  void (*copy_b)(const GemmPack<T>&);
  // to[e * columns + l] = from[l * from_step + e], and zeros behind the last l as above.
  void (*transpose_b)(const GemmPack<T>&);
  // As copy_b, with steps of `rows` instead of `columns`, undefined instead of zeros.
  void (*copy_a)(const GemmPack<T>&);

  // c[i * c_step + j] = Σ_p a[i * a_step + p] · b[j * b_step + p] for i in [0, m), j in [0, width).
  void (*dots)(int64_t m, const GemmTile<T>&);

  // As b's rows stream by.
  void (*few_rows)(const GemmRows<T>&);
};

struct GemmTable {
  GemmLoops<float> f32;
  GemmLoops<double> f64;
};

}  // namespace tessera::cpu
