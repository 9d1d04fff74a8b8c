// The innermost part of the nearest-anchor search, one table per instruction set. Files under simd/
// fill the tables; no symbol but a table leaves them.
#pragma once

#include <cstdint>
#include <span>

namespace tessera::lattice {

// Scores of a block of points against all anchors: start[j] + Σ_p point(i, p) · anchor(j, p),
// larger is nearer. Anchors lie in panels of `columns`; columns past the last anchor start at
// -infinity. Halves are bf16, two neighbours along p side by side. Everything is padded with zeros.
struct ScoreBlock {
  const void* points;  // (rows, depth): f32, or bf16
  int64_t rows;        // a multiple of the kernel's
  int64_t depth;       // a multiple of the kernel's unit
  const void* panels;  // (panel_count, depth, columns), or (panel_count, depth / 2, columns, 2)
  const float* start;  // (panel_count, columns)
  int64_t panel_count;
};

// Of each lane (the anchors j with j % lanes equal) the best score with its anchor, the first of
// equal ones, and the second best score.
struct LaneBest {
  float* best;      // (rows, lanes)
  float* second;    // (rows, lanes)
  int32_t* anchor;  // (rows, lanes)
};

struct PointNorms {
  float length;    // of point - centre
  float rounding;  // of the difference between that and what is stored
};

inline constexpr int kMaxLanes = 16;

struct NearestKernel {
  const char* name;
  int rows, columns, lanes;
  int unit;     // depths are multiples of it
  bool halves;  // computes in bf16

  // to[p] = from[p] - centre[p] for p in [0, dim), zeros up to depth.
  PointNorms (*prepare)(void* to, const float* from, const float* centre, int64_t dim,
                        int64_t depth);
  void (*scan)(const ScoreBlock& block, const LaneBest& to);
  // to[i * panel_count * columns + j] = the score of point i and anchor j.
  void (*scores)(const ScoreBlock& block, float* to);
};

// Sums of 16 lanes, lane l over p = l, l + 16, …, added pairwise at a distance of 8, 4, 2, 1. No
// fused multiply-adds: the bits are the same on every instruction set.
struct DistanceKernel {
  float (*squared_distance)(const float* a, const float* b, int64_t dim);
  float (*inner_product)(const float* a, const float* b, int64_t dim);
};

// Those this build has and this processor runs, the best one last. TESSERA_ISA, read once, leaves
// out what is newer than the instruction set it names (whether it names one is for the backend to
// say); kernels in f32 come first.
std::span<const NearestKernel* const> available_nearest_kernels();
const DistanceKernel& distance_kernel();

}  // namespace tessera::lattice
