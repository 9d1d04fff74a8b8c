// How a kernel's work lies over lanes: decided here as data, written as text by the other files.
#pragma once

#include <vector>

#include "tessera/codegen/phases.h"
#include "tessera/codegen/render.h"

namespace tessera {

enum class Spread : uint8_t {
  points,   // a map: a lane takes `width` points at a time
  rows,     // `parts` neighbouring lanes share a row and read neighbouring inner points
  columns,  // neighbouring lanes take neighbouring rows, which lie side by side in memory; the
            // parts of a row are rows_per_group() lanes apart
};

struct Plan {
  Spread spread = Spread::points;
  int group_size = 0;
  int width = 1;          // elements of one access, a power of two
  int turns = 0;          // of a map, accesses of a lane; 0: it walks on
  bool has_tail = false;  // the walked extent is a run-time one: points may be left over
  int parts = 1;          // lanes that share a row, a power of two
  int cluster = 1;        // groups that do so, a power of two
  int chunks = 0;         // of `width` points that a lane keeps in registers; 0: none
  // Rows that registers do not hold: what loops load is kept in local memory, each element at its
  // column, as it is stored; 0 bytes: it is loaded again.
  int64_t row_bytes = 0;
  // Rows that start anywhere: an access that every wide one starts alike with; -1: all are aligned.
  // The first access of a row reaches over its beginning then, and the last over its end.
  int shifted = -1;
  bool reads_ahead = false;  // of rows in local memory, the next one is brought nearer meanwhile
  std::vector<bool> wide;    // per instruction: it is one access of `width` elements
  std::vector<Phase> phases;

  int rows_per_group() const { return cluster > 1 ? 1 : group_size / parts; }
};

Plan make_plan(const KernelIR& ir, const RenderOptions& options);

// Bytes of local memory that the row of load `i` takes.
int64_t row_array_bytes(const KernelIR& ir, const Plan& plan, int i);

// Bytes that one access of `width` elements of `size` bytes must be aligned to.
int access_alignment(int width, int size);

}  // namespace tessera
