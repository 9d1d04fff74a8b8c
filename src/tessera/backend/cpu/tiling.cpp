#include "tessera/backend/cpu/tiling.h"

#include <algorithm>
#include <numeric>

#include "tessera/base/thread_pool.h"

namespace tessera::cpu {

namespace {

constexpr int64_t kLongestRow = 4096;   // rows up to here are not cut
constexpr int64_t kTransposeSide = 64;  // a square tile reads and writes whole cache lines
constexpr int64_t kWidest = 4096;   // so many contiguous columns stay whole: lines in memory are
                                    // then one run, which needs no copy
constexpr int64_t kColumns = 1024;  // columns of a tile, where there are more
constexpr int64_t kFewestColumns = 32;  // fewer waste most of each cache line
constexpr int64_t kColumnTile = 16384;  // points of a tile that holds whole columns
constexpr int64_t kMostSegments = 64;
constexpr int64_t kManyTiles = 256;      // of a map
constexpr int64_t kLongestTile = 65536;  // points
constexpr int64_t kPartsOfAThread = 8;

// A usual last-level cache. Not what sysconf says: that is the sum over a machine of which this
// process may have two cores.
constexpr int64_t kCache = int64_t(32) << 20;

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

// What a tile writes should stay in the first-level cache, and its points outweigh the calls.
int64_t tile_points(int bytes) {
  if (bytes <= 24) return 2048;
  return bytes <= 64 ? 1024 : 512;
}

int64_t tile_points(const Program& program) {
  const int bytes = std::min(program.point_bytes, program.written_bytes);
  if (bytes == 0) return 8192;
  return bytes <= 8 ? 4096 : tile_points(bytes);
}

// Of a tile that is a part of what is folded: sums are the more accurate the more of them are added
// up side by side.
int64_t chunk_points(const Program& program) { return tile_points(program.chunk_bytes); }

// Where tiles have no memory of their own, they may be long: memory stands still between two of
// them. Not where there would be few.
int64_t map_points(const Plan& plan, const Domain& domain) {
  const int64_t budget = tile_points(plan.chunked);
  if (plan.chunked.written_bytes > 0) return budget;
  const int64_t many = domain.outer_count * domain.inner_count / kManyTiles;
  return std::clamp(many, budget, kLongestTile);
}

void cut_map(const Plan& plan, const Domain& domain, Tiling& t) {
  const int64_t budget = map_points(plan, domain);
  const int64_t longest = plan.transposes ? kTransposeSide : budget;
  t.points = std::min(domain.inner_count, longest);
  t.rows = std::max<int64_t>(1, budget / t.points);
}

void cut_rows(const Plan& plan, const Domain& domain, Tiling& t) {
  t.whole = domain.inner_count <= kLongestRow;
  t.points = t.whole ? domain.inner_count : chunk_points(plan.chunked);
  const int64_t budget = tile_points(plan.whole);
  t.rows = t.whole ? std::max<int64_t>(1, budget / std::max<int64_t>(1, t.points)) : 1;
}

void cut_columns(const Plan& plan, const Domain& domain, Tiling& t) {
  const bool narrow = domain.outer_count <= kWidest;
  const int64_t columns = narrow ? domain.outer_count : kColumns;
  const int64_t room = kColumnTile / std::max<int64_t>(1, domain.inner_count);
  const bool one_phase = plan.chunked.phases.size() <= 2;
  const int64_t chunk = std::max<int64_t>(4, 2 * chunk_points(plan.chunked) / columns);
  t.whole = domain.inner_count <= chunk ||
            (!one_phase && room >= std::min(kFewestColumns, domain.outer_count));
  t.rows = t.whole ? std::min(columns, std::max<int64_t>(1, room)) : columns;
  t.points = t.whole ? domain.inner_count : chunk;
}

}  // namespace

Domain make_domain(const Plan& plan, int64_t extent0) {
  Domain domain;
  domain.rank = plan.ir.extents.rank();
  domain.inner = plan.ir.inner;
  domain.outer_count = domain.inner_count = 1;
  for (int d = 0; d < domain.rank; ++d) {
    domain.extents[d] = d == 0 ? extent0 * plan.scale0 : plan.ir.extents[d];
    (d < domain.inner ? domain.outer_count : domain.inner_count) *= domain.extents[d];
  }
  return domain;
}

Tiling choose_tiling(const Plan& plan, const Domain& domain) {
  Tiling t{};
  if (plan.map) {
    cut_map(plan, domain, t);
  } else if (plan.inner_fast) {
    cut_rows(plan, domain, t);
  } else {
    cut_columns(plan, domain, t);
  }
  t.rows = std::min(t.rows, domain.outer_count);
  t.row_blocks = divide_up(domain.outer_count, t.rows);
  t.chunks = t.whole ? 1 : divide_up(domain.inner_count, t.points);
  const int64_t even = divide_up(t.chunks, kMostSegments);
  t.segment = std::max<int64_t>(16, even) * t.points;
  t.segments = t.whole ? 1 : divide_up(domain.inner_count, t.segment);
  return t;
}

int64_t tasks_of_part(int64_t tasks, int64_t grain) {
  return std::max(grain, tasks / (kPartsOfAThread * (1 + thread_pool().workers())));
}

bool outgrows_caches(int64_t bytes) { return bytes > kCache; }

bool outgrows_caches(const Plan& plan, const Domain& domain) {
  std::vector<int64_t> bytes(plan.ir.operands.size(), 0);
  for (const Access& access : plan.accesses) {
    if (access.operand < 0) continue;
    int64_t elements = 1;
    for (int d = 0; d < domain.rank; ++d) {
      if (access.strides[d] != 0) elements *= domain.extents[d];
    }
    int64_t& most = bytes[size_t(access.operand)];
    most = std::max(most, elements * access.memory_size);
  }
  return outgrows_caches(std::accumulate(bytes.begin(), bytes.end(), int64_t{0}));
}

}  // namespace tessera::cpu
