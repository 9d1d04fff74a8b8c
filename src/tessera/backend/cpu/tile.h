// Running the steps of a Plan on one tile.
#pragma once

#include <cstdint>

#include "tessera/backend/cpu/plan.h"

namespace tessera::cpu {

// The domain of one launch: Plan::ir's extents with extents[0] filled in.
struct Domain {
  int64_t extents[kMaxRank];
  int rank, inner;
  int64_t outer_count, inner_count;
};

// `rows` consecutive outer points by `points` consecutive inner points, both row-major.
struct Tile {
  int64_t row0, rows;
  int64_t point0, points;
  bool inner_fast;  // how its registers are stored

  int64_t count() const { return rows * points; }
  int64_t fast() const { return inner_fast ? points : rows; }
  int64_t slow() const { return inner_fast ? rows : points; }
};

// One thread's memory for a launch. Point registers live at points + slot * capacity, row registers
// at rows + slot * row_capacity, values of one block at blocks + slot * kMostBlock.
struct Workspace {
  const Plan* plan;
  const Domain* domain;
  char* const* operands;  // addresses
  char** registers;       // where each register's values are now
  char* points;
  char* blocks;
  char* rows;
  char* spare;  // 3 * 8 * max(capacity, row_capacity) bytes
  int64_t capacity, row_capacity;
  bool streams;  // results go past the caches
};

// Any step but a reduce or a chain. Throws Error for an index out of range.
void run_step(const Workspace& work, const Step& step, const Tile& tile);

// The chains that run together from the first of `steps` on.
void run_chains(const Workspace& work, const Step* steps, const Tile& tile);

// Folds the tile into the state at `rows` (a row area).
void run_fold(const Workspace& work, const Step& step, const Tile& tile, char* rows);

// Sets the state of a fold to its identity.
void start_fold(const Workspace& work, const Step& step, int64_t count, char* rows);

// Folds the state at `part`, which comes later, into the one at `rows`.
void combine_fold(const Workspace& work, const Step& step, int64_t count, char* rows,
                  const char* part);

}  // namespace tessera::cpu
