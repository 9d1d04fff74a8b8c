#include "tessera/backend/cpu/kernels/product_blocks.h"

#include <unistd.h>

#include <algorithm>

#include "tessera/backend/cpu/kernels/product.h"

namespace tessera::cpu {

namespace {

constexpr int64_t kWorthAThread = 1 << 16;  // multiplications
constexpr int64_t kWorthATask = 1 << 24;    // a product this large has several tasks per thread
constexpr int64_t kTasksPerThread = 2;
constexpr int64_t kDeepest = 512;  // of a block: loading and storing c costs little by then
constexpr int64_t kWorthSharing = 1 << 24;  // multiplications of a thread
constexpr int64_t kSharingTasks = 3;        // of a thread, of at least
constexpr int64_t kLeastTiles = 3;          // tiles up and across
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
  const double tiles =
      double(divide_up(rows, s.tile_rows)) * double(divide_up(columns, s.tile_columns));
  return tiles * kTileVectors + kPackA * double(rows) + kPackB * double(columns);
}

}  // namespace

Product transposed(const Product& p) {
  return {p.dtype, p.n,        p.m,     p.k, p.b,        p.b_column, p.b_row,
          p.a,     p.a_column, p.a_row, p.c, p.c_column, p.c_row};
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
  if (users == 1) return {1, 1, s.m, s.n};
  // Several tasks per thread even out what else the machine does.
  const int64_t least = users * std::clamp<int64_t>(work / users / kWorthATask, 1, kTasksPerThread);
  Grid best = {1, 1, s.m, s.n};
  double best_cost = 1e300;
  for (int64_t row_parts = 1; row_parts <= least; ++row_parts) {
    const int64_t rows = round_up(divide_up(s.m, row_parts), s.tile_rows);
    const int64_t columns = round_up(divide_up(s.n, divide_up(least, row_parts)), s.tile_columns);
    const Grid grid = {divide_up(s.m, rows), divide_up(s.n, columns), rows, columns};
    const int64_t rounds = divide_up(grid.row_parts * grid.column_parts, users);
    const double total = double(rounds) * cost(s, rows, columns);
    if (total < best_cost) {
      best_cost = total;
      best = grid;
    }
  }
  return best;
}

SharedBlocks choose_shared_blocks(const ProductShape& s, const Blocks& blocks, int64_t threads) {
  if (threads == 1 || s.m * s.n * s.k / threads < kWorthSharing) return {};
  const int64_t wanted = threads * kSharingTasks;
  const auto part = [](int64_t all, int64_t parts, int64_t tile) {
    return round_up(divide_up(all, parts), tile);
  };
  const int64_t widest = cache_sizes().second / 2 / (blocks.depth * s.element);
  int64_t row_parts = divide_up(s.m, blocks.rows);
  int64_t column_parts = divide_up(s.n, std::max(widest, s.tile_columns));
  while (row_parts * column_parts < wanted) {
    const int64_t rows = part(s.m, row_parts, s.tile_rows) / s.tile_rows;
    const int64_t columns = part(s.n, column_parts, s.tile_columns) / s.tile_columns;
    if (std::max(rows, columns) < 2 * kLeastTiles) return {};
    (rows >= columns ? row_parts : column_parts) += 1;
  }
  const int64_t task_rows = part(s.m, row_parts, s.tile_rows);
  const int64_t most = std::max<int64_t>(1, kSharedBytes / (blocks.depth * s.element * task_rows));
  return {most * task_rows, task_rows, part(s.n, column_parts, s.tile_columns)};
}

int64_t depth_parts(const ProductShape& s) {
  const int64_t tiles = divide_up(s.m, s.tile_rows) * divide_up(s.n, s.tile_columns);
  if (tiles >= kFewTiles) return 1;
  return std::clamp<int64_t>(s.k / kDeep, 1, kMostDepthParts);
}

}  // namespace tessera::cpu
