// The cells to look into: those whose anchors are nearest to a query.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/lattice/metric.h"

namespace tessera::lattice {

struct Probe {
  int32_t cell;
  float product;  // <query, anchor>
};

// anchors: (cells, padded_dim) with squared lengths anchor_n2 (cells); queries: (n, padded_dim).
// Returns (n, count), nearest first: by l2 for l2 and cosine (cells are l2's), by inner product
// for inner product; of equals the lower cell first.
std::vector<Probe> nearest_cells(Metric metric, int32_t padded_dim, std::span<const float> anchors,
                                 std::span<const float> anchor_n2, std::span<const float> queries,
                                 int32_t count);

}  // namespace tessera::lattice
