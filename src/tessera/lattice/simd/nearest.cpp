// Scores in f32. Compiled once per instruction set; no symbol but the table may leave this file.
#include "tessera/lattice/nearest_kernels.h"

#define TESSERA_INLINE [[gnu::always_inline]] inline
#define TESSERA_TEXT_(text) #text
#define TESSERA_TEXT(text) TESSERA_TEXT_(text)
#define TESSERA_JOIN_(a, b) a##b
#define TESSERA_JOIN(a, b) TESSERA_JOIN_(a, b)

namespace tessera::lattice {

namespace {

// The accumulators of a tile, one row of a panel and one element of a point just fill the
// registers.
#if defined(__AVX512F__)
constexpr int kVectorBytes = 64, kRows = 12;
#elif defined(__AVX2__)
constexpr int kVectorBytes = 32, kRows = 6;
#elif defined(__aarch64__)
constexpr int kVectorBytes = 16, kRows = 12;
#else
constexpr int kVectorBytes = 16, kRows = 6;
#endif
constexpr int kLanes = kVectorBytes / int(sizeof(float));
constexpr int kVectors = 2;
constexpr int kColumns = kVectors * kLanes;

#include "tessera/lattice/simd/lane_best.h"

// The scores of kRows points and one panel.
TESSERA_INLINE void multiply(Vector (&acc)[kRows][kVectors], const float* points, int64_t depth,
                             const float* panel, const float* start) {
  for (int w = 0; w < kVectors; ++w) {
    Vector first;
    load(first, start + w * kLanes);
    for (int i = 0; i < kRows; ++i) acc[i][w] = first;
  }
  for (int64_t p = 0; p < depth; ++p, panel += kColumns) {
    Vector row[kVectors];
    for (int w = 0; w < kVectors; ++w) load(row[w], panel + w * kLanes);
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      const float factor = points[i * depth + p];
#pragma GCC unroll 2
      for (int w = 0; w < kVectors; ++w) acc[i][w] += factor * row[w];
    }
  }
}

void scan(const ScoreBlock& block, const LaneBest& to) {
  const auto* points = static_cast<const float*>(block.points);
  const auto* panels = static_cast<const float*>(block.panels);
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

void scores(const ScoreBlock& block, float* to) {
  const auto* points = static_cast<const float*>(block.points);
  const auto* panels = static_cast<const float*>(block.panels);
  const int64_t step = block.panel_count * kColumns;
  for (int64_t j = 0; j < block.panel_count; ++j) {
    for (int64_t i = 0; i < block.rows; i += kRows) {
      Vector acc[kRows][kVectors];
      multiply(acc, points + i * block.depth, block.depth, panels + j * block.depth * kColumns,
               block.start + j * kColumns);
      for (int r = 0; r < kRows; ++r) {
        __builtin_memcpy(to + (i + r) * step + j * kColumns, acc[r], sizeof acc[r]);
      }
    }
  }
}

// What the subtraction rounds away is part of what scan's users allow for (see nearest.cpp).
PointNorms prepare(void* to, const float* from, const float* centre, int64_t dim, int64_t depth) {
  auto* values = static_cast<float*>(to);
  for (int64_t p = 0; p < dim; ++p) values[p] = from[p] - centre[p];
  for (int64_t p = dim; p < depth; ++p) values[p] = 0;
  return {length_of(values, dim), 0};
}

}  // namespace

extern constinit const NearestKernel TESSERA_JOIN(kNearest_, TESSERA_SIMD_NAME);
constinit const NearestKernel TESSERA_JOIN(kNearest_, TESSERA_SIMD_NAME) = {
    TESSERA_TEXT(TESSERA_SIMD_NAME), kRows, kColumns, kLanes, 1, false, prepare, scan, scores};

}  // namespace tessera::lattice
