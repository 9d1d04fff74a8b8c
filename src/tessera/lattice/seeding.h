// Which points anchors begin at.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tessera::lattice {

// Row numbers of `count` points (n, dim), in the order they were chosen, by D² sampling
// (k-means++): the first uniformly, each further one with a probability proportional to its squared
// distance from the nearest chosen one. Where every point coincides with a chosen one, uniformly.
//
// Distances are brought up to date for many new seeds at once, by a matrix product; in between, a
// draw by the old distances is accepted with probability new / old, which gives exactly the
// distribution of the plain, sequential method. REQUIRES: 1 <= count <= n, and squared distances
// that are finite in f32.
std::vector<int64_t> plus_plus(std::span<const float> points, int64_t dim, int64_t count,
                               uint64_t seed);

// The first uniformly, each further one, of the rows that are left, the farthest from all chosen
// before, and the first among equal ones. At most n * count distances are computed, and far fewer
// where seeds leave most points alone: a point is compared with the latest seeds only when it is
// about to be chosen.
std::vector<int64_t> farthest_first(std::span<const float> points, int64_t dim, int64_t count,
                                    uint64_t seed);

}  // namespace tessera::lattice
