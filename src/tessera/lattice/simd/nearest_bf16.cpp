// Scores by instructions that multiply pairs of bf16: AVX-512 BF16, and once more with AMX. No
// symbol but the table may leave this file.
#include "tessera/lattice/nearest_kernels.h"

#if defined(__AMX_BF16__)
#include <immintrin.h>
#endif

#define TESSERA_INLINE [[gnu::always_inline]] inline
#define TESSERA_TEXT_(text) #text
#define TESSERA_TEXT(text) TESSERA_TEXT_(text)
#define TESSERA_JOIN_(a, b) a##b
#define TESSERA_JOIN(a, b) TESSERA_JOIN_(a, b)

namespace tessera::lattice {

namespace {

constexpr int kVectorBytes = 64, kLanes = 16, kVectors = 2, kColumns = 32;

#include "tessera/lattice/simd/lane_best.h"

#if defined(__AMX_BF16__)

constexpr int kRows = 32, kUnit = 32;

struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};

  constexpr TileConfig() {
    for (int i = 0; i < 8; ++i) {
      row_bytes[i] = 64;
      rows[i] = 16;
    }
  }
};
static_assert(sizeof(TileConfig) == 64);

// A constant: compilers do not see that the instruction reads all of it, and could drop stores.
constexpr TileConfig kTileConfig;

TESSERA_INLINE void begin() { _tile_loadconfig(&kTileConfig); }
TESSERA_INLINE void end() { _tile_release(); }

// Tiles 0 to 3 are the scores, 4 and 5 points, 6 and 7 anchors. A step of 0 loads the same row 16
// times: every point starts with the same scores. Products take long and wait for nothing, so the
// vector units are given other work between them: meanwhile(i) for i from 0 to depth / kUnit - 1.
template <class Work>
TESSERA_INLINE void multiply(float* to, int64_t to_step, const uint16_t* points, int64_t depth,
                             const uint16_t* panel, const float* start, const Work& meanwhile) {
  const int64_t point_bytes = depth * int64_t(sizeof *points);
  constexpr int64_t kPairBytes = kColumns * 4;
  _tile_loadd(0, start, 0);
  _tile_loadd(1, start + 16, 0);
  _tile_loadd(2, start, 0);
  _tile_loadd(3, start + 16, 0);
  for (int64_t p = 0; p < depth; p += kUnit, panel += kUnit * kColumns) {
    _tile_loadd(4, points + p, point_bytes);
    _tile_loadd(6, panel, kPairBytes);
    _tile_loadd(7, panel + 32, kPairBytes);
    _tile_loadd(5, points + 16 * depth + p, point_bytes);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
    meanwhile(p / kUnit);
  }
  const int64_t to_bytes = to_step * int64_t(sizeof *to);
  _tile_stored(0, to, to_bytes);
  _tile_stored(1, to + 16, to_bytes);
  _tile_stored(2, to + 16 * to_step, to_bytes);
  _tile_stored(3, to + 16 * to_step + 16, to_bytes);
}

// The scores of a tile, to be looked through while a later one is multiplied.
struct Finished {
  float* scores;  // (kRows, kColumns)
  int64_t row;
  int32_t first_anchor;
};

TESSERA_INLINE void keep_rows(const LaneBest& to, const Finished& tile, int64_t begin,
                              int64_t end) {
  for (int64_t r = begin; r < (end < kRows ? end : kRows); ++r) {
    Vector row[kVectors];
    for (int w = 0; w < kVectors; ++w) load(row[w], tile.scores + r * kColumns + w * kLanes);
    keep_best(to, tile.row + r, tile.first_anchor, row);
  }
}

// How many panels the second-level cache holds beside what else is in use.
TESSERA_INLINE int64_t group_of(int64_t panel_bytes) {
  constexpr int64_t kGroupBytes = 512 * 1024;
  return panel_bytes < kGroupBytes ? kGroupBytes / panel_bytes : 1;
}

// Points and lanes of a tile stay in the first-level cache, and a group of panels in the second.
// Loads of what a tile has just stored would wait for it, so the scores that are looked through are
// those of the tile before the last; the next tile takes their place.
void scan(const ScoreBlock& block, const LaneBest& to) {
  const LaneBest lanes = to;
  const int64_t depth = block.depth, panel_size = depth * kColumns;
  const int64_t share = (kRows * kUnit + depth - 1) / depth;  // rows to look through at each step
  const int64_t group = group_of(panel_size * 2);
  const auto* points = static_cast<const uint16_t*>(block.points);
  const auto* panels = static_cast<const uint16_t*>(block.panels);
  alignas(64) float scores[2][kRows * kColumns];
  for (auto& tile : scores) {
    for (float& score : tile) score = -__builtin_inff();  // nothing of it is kept
  }
  Finished before = {scores[0], 0, 0}, last = {scores[1], 0, 0};
  clear(lanes, block.rows);
  begin();
  for (int64_t first = 0; first < block.panel_count; first += group) {
    const int64_t rest = block.panel_count - first, stop = first + (rest < group ? rest : group);
    for (int64_t i = 0; i < block.rows; i += kRows) {
      for (int64_t j = first; j < stop; ++j) {
        multiply(before.scores, kColumns, points + i * depth, depth, panels + j * panel_size,
                 block.start + j * kColumns,
                 [&](int64_t step) { keep_rows(lanes, before, step * share, (step + 1) * share); });
        const Finished next = {before.scores, i, int32_t(j) * kColumns};
        before = last;
        last = next;
      }
    }
  }
  keep_rows(lanes, before, 0, kRows);
  keep_rows(lanes, last, 0, kRows);
  end();
}

#else

constexpr int kRows = 12, kUnit = 2;

TESSERA_INLINE void begin() {}
TESSERA_INLINE void end() {}

typedef int32_t Pairs __attribute__((vector_size(kVectorBytes)));

// sum += Σ of the products of each pair. Not the intrinsic: clang 16's optimiser crashes on it.
TESSERA_INLINE void add_products(Vector& sum, const Pairs& a, const Pairs& b) {
  asm("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
}

TESSERA_INLINE void multiply(Vector (&acc)[kRows][kVectors], const uint16_t* points, int64_t depth,
                             const uint16_t* panel, const float* start) {
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
    load(acc[i][0], start);
    load(acc[i][1], start + kLanes);
  }
  for (int64_t p = 0; p < depth; p += 2, panel += 2 * kColumns) {
    Pairs first, second;
    __builtin_memcpy(&first, panel, sizeof first);
    __builtin_memcpy(&second, panel + kColumns, sizeof second);
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      int32_t pair;
      __builtin_memcpy(&pair, points + i * depth + p, sizeof pair);
      const Pairs factor = pair - Pairs{};
      add_products(acc[i][0], factor, first);
      add_products(acc[i][1], factor, second);
    }
  }
}

void scan(const ScoreBlock& block, const LaneBest& to) {
  const auto* points = static_cast<const uint16_t*>(block.points);
  const auto* panels = static_cast<const uint16_t*>(block.panels);
  clear(to, block.rows);
  for (int64_t j = 0; j < block.panel_count; ++j) {
    for (int64_t i = 0; i < block.rows; i += kRows) {
      Vector acc[kRows][kVectors];
      multiply(acc, points + i * block.depth, block.depth, panels + j * block.depth * kColumns,
               block.start + j * kColumns);
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) keep_best(to, i + r, int32_t(j) * kColumns, acc[r]);
    }
  }
}

#endif

void scores(const ScoreBlock& block, float* to) {
  const auto* points = static_cast<const uint16_t*>(block.points);
  const auto* panels = static_cast<const uint16_t*>(block.panels);
  const int64_t step = block.panel_count * kColumns;
  begin();
  for (int64_t j = 0; j < block.panel_count; ++j) {
    const uint16_t* panel = panels + j * block.depth * kColumns;
    const float* start = block.start + j * kColumns;
    for (int64_t i = 0; i < block.rows; i += kRows) {
      const uint16_t* tile = points + i * block.depth;
      float* out = to + i * step + j * kColumns;
#if defined(__AMX_BF16__)
      multiply(out, step, tile, block.depth, panel, start, [](int64_t) {});
#else
      Vector acc[kRows][kVectors];
      multiply(acc, tile, block.depth, panel, start);
      for (int r = 0; r < kRows; ++r) __builtin_memcpy(out + r * step, acc[r], sizeof acc[r]);
#endif
    }
  }
  end();
}

typedef uint32_t Bits __attribute__((vector_size(kVectorBytes)));
typedef uint16_t Halves __attribute__((vector_size(kVectorBytes / 2)));

// Rounds to nearest even, as base/half.h does; points are finite. Adds up squares.
TESSERA_INLINE void prepare_lanes(uint16_t* to, const float* from, const float* centre,
                                  Vector& squares, Vector& lost) {
  Vector value, offset;
  load(value, from);
  load(offset, centre);
  value -= offset;
  const Bits bits = (Bits)value;
  const Bits half = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  const Vector error = value - (Vector)(half << 16);
  squares += value * value;
  lost += error * error;
  const Halves narrow = __builtin_convertvector(half, Halves);
  __builtin_memcpy(to, &narrow, sizeof narrow);
}

PointNorms prepare(void* to, const float* from, const float* centre, int64_t dim, int64_t depth) {
  auto* halves = static_cast<uint16_t*>(to);
  Vector squares = {}, lost = {};
  int64_t p = 0;
  for (; p + kLanes <= dim; p += kLanes) {
    prepare_lanes(halves + p, from + p, centre + p, squares, lost);
  }
  for (; p < depth; p += kLanes) {
    float rest[2][kLanes] = {};
    uint16_t rounded[kLanes];
    for (int64_t i = 0; i < kLanes && p + i < dim; ++i) {
      rest[0][i] = from[p + i];
      rest[1][i] = centre[p + i];
    }
    prepare_lanes(rounded, rest[0], rest[1], squares, lost);
    for (int64_t i = 0; i < kLanes && p + i < depth; ++i) halves[p + i] = rounded[i];
  }
  float sums[2] = {};
  for (int l = 0; l < kLanes; ++l) {
    sums[0] += squares[l];
    sums[1] += lost[l];
  }
  return {__builtin_sqrtf(sums[0]), __builtin_sqrtf(sums[1])};
}

}  // namespace

extern constinit const NearestKernel TESSERA_JOIN(kNearest_, TESSERA_SIMD_NAME);
constinit const NearestKernel TESSERA_JOIN(kNearest_, TESSERA_SIMD_NAME) = {
    TESSERA_TEXT(TESSERA_SIMD_NAME), kRows, kColumns, kLanes, kUnit, true, prepare, scan, scores};

}  // namespace tessera::lattice
