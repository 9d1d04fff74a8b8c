// How a launch cuts its domain into tiles. Depends on the kernel and its extents alone, never on
// the number of threads, and so do the results.
#pragma once

#include "tessera/backend/cpu/tile.h"

namespace tessera::cpu {

struct Tiling {
  bool whole;            // each tile holds whole rows: the Plan's `whole` program runs
  int64_t rows, points;  // of a tile; the last ones may be smaller
  int64_t segment;       // inner points per partial result, a multiple of `points`
  int64_t row_blocks, chunks, segments;
};

Domain make_domain(const Plan& plan, int64_t extent0);

Tiling choose_tiling(const Plan& plan, const Domain& domain);

// Tasks of a part, at least `grain`: a thread that stays with neighbours walks along memory, and a
// few parts for each still even out their times. For tasks whose results do not depend on it.
int64_t tasks_of_part(int64_t tasks, int64_t grain);

// Whether a kernel touches so many bytes that its results would hardly be in a cache when somebody
// reads them, and had better leave it to the operands.
bool outgrows_caches(int64_t bytes);
bool outgrows_caches(const Plan& plan, const Domain& domain);

}  // namespace tessera::cpu
