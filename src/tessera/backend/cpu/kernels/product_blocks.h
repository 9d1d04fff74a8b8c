// How a matrix product is cut: along k by the caches, along the rows and columns of c by threads.
#pragma once

#include <algorithm>
#include <cstdint>

namespace tessera::cpu {

// The data caches a core has for itself; what the system tells, or a modest guess.
struct CacheSizes {
  int64_t first, second;  // bytes
};
const CacheSizes& cache_sizes();

inline int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }
inline int64_t round_up(int64_t a, int64_t b) { return divide_up(a, b) * b; }

// Rows or columns cut into parts of whole units, as many in each as in any other or one more.
struct EvenParts {
  int64_t extent, unit, count;

  static EvenParts at_most(int64_t count, int64_t extent, int64_t unit) {
    return {extent, unit, std::min(count, divide_up(extent, unit))};
  }
  int64_t begin(int64_t part) const {
    return std::min(extent, divide_up(extent, unit) * part / count * unit);
  }
  int64_t size(int64_t part) const { return begin(part + 1) - begin(part); }
  int64_t largest() const {
    return std::min(extent, divide_up(divide_up(extent, unit), count) * unit);
  }
};

struct Region {  // of c
  int64_t row, rows, column, columns;
};

// The kernels' view of a product: its extents, the extents of a full tile, bytes of an element.
struct ProductShape {
  int64_t m, n, k;
  int64_t tile_rows, tile_columns;
  int64_t element;
  int64_t column_unit;  // columns of whole vectors
};

// Extents of packed blocks. `depth` is a function of k and the machine alone: it decides the order
// in which elements are summed.
struct Blocks {
  int64_t depth;          // along k: a tile's panel of a stays in the first-level cache
  int64_t rows, columns;  // of a block of a (a quarter of the second-level cache) and of b
};
Blocks choose_blocks(const ProductShape& shape);

// c cut into tasks, one for each pair of parts.
struct Grid {
  EvenParts rows, columns;
  int64_t tasks() const { return rows.count * columns.count; }
};
Grid choose_grid(const ProductShape& shape, int64_t threads);

// A large c cut into many tasks whose rows of a and columns of b, packed, fit the second-level
// cache.
struct SharedBlocks {
  int64_t rows = 0;  // of a that are packed at a time; 0: tasks share nothing
  int64_t task_rows = 0, task_columns = 0;
  bool down_first = false;  // a task's neighbour is the one below it, not the one beside it
};
SharedBlocks choose_shared_blocks(const ProductShape& shape, const Blocks& blocks, int64_t threads);

// Into how many parts k is cut because c has too few tiles to occupy many threads; a function of
// the shape alone. 1: it is not.
int64_t depth_parts(const ProductShape& shape);

}  // namespace tessera::cpu
