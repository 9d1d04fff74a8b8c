#include "tessera/backend/cpu/kernels/product_blocks.h"

#include <unistd.h>

#include <algorithm>
#include <limits>

#include "tessera/backend/cpu/kernels/product.h"

namespace tessera::cpu {

namespace {

constexpr int64_t kWorthAThread = 1 << 16;  // multiplications
constexpr int64_t kWorthATask = 1 << 24;    // a product this large has several tasks per thread
constexpr int64_t kTasksPerThread = 2;
constexpr int64_t kDeepest = 512;  // of a block: loading and storing c costs little by then
constexpr int64_t kWorthSharing = 1 << 24;  // multiplications of a thread
constexpr int64_t kSharingTasks = 3;        // of a thread, of at least
constexpr int64_t kTriedParts = 4;          // more than the least up and across
constexpr int64_t kLeastTiles = 3;          // of a task, up or across
constexpr int64_t kSharedBytes = 16 << 20;  // of a that are packed at a time
constexpr int64_t kFewTiles = 64, kDeep = 2048, kMostDepthParts = 32;

// Cycles to fetch and pack one element, against those of one vector of multiplications. Every task
// packs what it needs: large ones share more.
constexpr double kPackA = 1, kPackB = 1;
constexpr double kTileVectors = 24;  // multiplications of a tile's step along k

int64_t size_or(int name, int64_t guess) {
  const int64_t size = sysconf(name);
  return size > 0 ? size : guess;
}

// Cycles of a task per step along k.
double cost(const ProductShape& s, int64_t rows, int64_t columns) {
  const double tiles = double(rows) / double(s.tile_rows) *
                       double(round_up(columns, s.column_unit)) / double(s.tile_columns);
  return tiles * kTileVectors + kPackA * double(rows) + kPackB * double(columns);
}

}  // namespace

Product transposed(const Product& p) {
  return {p.dtype, p.n,        p.m,     p.k, p.b,        p.b_column, p.b_row,
          p.a,     p.a_column, p.a_row, p.c, p.c_column, p.c_row};
}

bool rows_collide(const Product& p) {
  constexpr int64_t kSets = 4096;  // bytes until a set is met again: a page, on all processors here
  return p.b_row * size_of(p.dtype) % kSets == 0;
}

const CacheSizes& cache_sizes() {
  static const CacheSizes sizes = {size_or(_SC_LEVEL1_DCACHE_SIZE, 32 << 10),
                                   size_or(_SC_LEVEL2_CACHE_SIZE, 512 << 10)};
  return sizes;
}

Blocks choose_blocks(const ProductShape& s) {
  const CacheSizes& caches = cache_sizes();
  const int64_t line = s.element * s.tile_rows;
  const int64_t deepest = std::clamp<int64_t>(caches.first / line, 64, kDeepest);
  Blocks blocks;
  // Blocks of equal depth: a short last one would load and store all of c for little work.
  blocks.depth = std::max<int64_t>(1, divide_up(s.k, divide_up(s.k, deepest)));
  const int64_t bytes = blocks.depth * s.element;
  blocks.rows = round_up(std::max<int64_t>(1, caches.second / 4 / bytes), s.tile_rows);
  blocks.columns = round_up(std::max<int64_t>(1, 4 * caches.second / bytes), s.tile_columns);
  return blocks;
}

Grid choose_grid(const ProductShape& s, int64_t threads) {
  const int64_t work = s.m * s.n * s.k;
  const int64_t users = std::min(threads, std::max<int64_t>(1, work / kWorthAThread));
  Grid best = {{s.m, s.tile_rows, 1}, {s.n, s.column_unit, 1}};
  if (users == 1) return best;
  // Several tasks per thread even out what else the machine does.
  const int64_t least = users * std::clamp<int64_t>(work / users / kWorthATask, 1, kTasksPerThread);
  double best_cost = 1e300;
  for (int64_t row_parts = 1; row_parts <= least; ++row_parts) {
    const Grid one = {EvenParts::at_most(row_parts, s.m, s.tile_rows),
                      EvenParts::at_most(divide_up(least, row_parts), s.n, s.column_unit)};
    const int64_t rounds = divide_up(one.tasks(), users);
    const double total = double(rounds) * cost(s, one.rows.largest(), one.columns.largest());
    if (total < best_cost) {
      best_cost = total;
      best = one;
    }
  }
  return best;
}

SharedBlocks choose_shared_blocks(const ProductShape& s, const Blocks& blocks, int64_t threads) {
  if (threads == 1 || s.m * s.n * s.k / threads < kWorthSharing) return {};
  const int64_t wanted = threads * kSharingTasks;
  const int64_t row_tiles = divide_up(s.m, s.tile_rows),
                column_tiles = divide_up(s.n, s.tile_columns);
  const int64_t widest = cache_sizes().second / 2 / (blocks.depth * s.element);
  const int64_t least_rows = divide_up(s.m, blocks.rows);
  const int64_t least_columns = divide_up(s.n, std::max(widest, s.tile_columns));
  int64_t best_cost = std::numeric_limits<int64_t>::max(), row_parts = 0, column_parts = 0;
  bool down_first = false;
  for (int64_t up = least_rows; up < least_rows + kTriedParts; ++up) {
    const int64_t least = std::max(least_columns, divide_up(wanted, up));
    for (int64_t across = least; across < least + kTriedParts; ++across) {
      const int64_t rows = divide_up(row_tiles, up), columns = divide_up(column_tiles, across);
      if (std::max(rows, columns) < kLeastTiles) break;
      // Tiles of the thread that has most. A thread has neighbouring tasks: where they are whole
      // rows of tasks, all that counts is how many rows of tiles they have.
      const int64_t any = divide_up(up * across, threads) * rows * columns;
      const int64_t by_rows =
          up % threads != 0 ? any : divide_up(row_tiles, threads) * column_tiles;
      const int64_t by_columns =
          across % threads != 0 ? any : divide_up(column_tiles, threads) * row_tiles;
      const int64_t cost = std::min(by_rows, by_columns);
      if (cost >= best_cost) continue;
      best_cost = cost;
      row_parts = up;
      column_parts = across;
      down_first = by_columns <= by_rows;
    }
  }
  if (row_parts == 0) return {};
  const int64_t task_rows = divide_up(row_tiles, row_parts) * s.tile_rows;
  const int64_t most = std::max<int64_t>(1, kSharedBytes / (blocks.depth * s.element * task_rows));
  return {most * task_rows, task_rows, divide_up(column_tiles, column_parts) * s.tile_columns,
          down_first};
}

int64_t depth_parts(const ProductShape& s) {
  const int64_t tiles = divide_up(s.m, s.tile_rows) * divide_up(s.n, s.tile_columns);
  if (tiles >= kFewTiles) return 1;
  return std::clamp<int64_t>(s.k / kDeep, 1, kMostDepthParts);
}

}  // namespace tessera::cpu
