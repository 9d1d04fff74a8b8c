// Scans lists for many queries at once. Queries are grouped by list; each list is read once for up
// to 64 queries, in 8 bits; candidates are compared with what their query has already before they
// touch its heap.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/lattice/coarse.h"
#include "tessera/lattice/id_set.h"
#include "tessera/lattice/lists.h"
#include "tessera/lattice/topk.h"

namespace tessera::lattice {

struct ScanFilter {
  const IdSet* allow = nullptr;  // only these
  const IdSet* deny = nullptr;   // all but these

  bool active() const { return allow != nullptr || deny != nullptr; }
  bool passes(int64_t id) const {
    return (allow == nullptr || allow->contains(id)) && (deny == nullptr || !deny->contains(id));
  }
};

// What a scan needs of an index, prepared once. All padded to padded_dim.
struct TransformedAnchors {
  explicit TransformedAnchors(const SearchIndex& index);

  std::span<const float> anchor(int32_t cell) const { return row(anchors, cell); }
  std::span<const float> diagonal(int32_t cell) const {
    return diagonals.empty() ? std::span<const float>() : row(diagonals, cell);
  }

  int32_t padded_dim;
  std::vector<float> anchors;    // (cells, padded_dim)
  std::vector<float> anchor_n2;  // (cells)
  std::vector<float> diagonals;  // (cells, padded_dim) or empty
  std::vector<float> hot_n2;     // (cells), of HotQuery; empty without planes

 private:
  std::span<const float> row(const std::vector<float>& rows, int32_t cell) const {
    return std::span(rows).subspan(size_t(cell) * size_t(padded_dim), size_t(padded_dim));
  }
};

// How much was read of an index with planes: vectors that a query was alone with, and those of them
// that were read beyond their top bits.
struct PlaneCounts {
  int64_t scanned = 0, refined = 0;

  void add(const PlaneCounts& other) {
    scanned += other.scanned;
    refined += other.refined;
  }
};

// Offers what the probed cells hold to best (n). queries: (n, padded_dim) transformed; probes:
// (n, count). The result does not depend on the number of threads.
PlaneCounts scan_cells(const SearchIndex& index, const TransformedAnchors& anchors,
                       const ScanFilter& filter, std::span<const float> queries,
                       std::span<const Probe> probes, std::span<TopK> best);

}  // namespace tessera::lattice
