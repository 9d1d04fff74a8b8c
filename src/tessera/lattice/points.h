// Points from a file, as the metric wants them.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "tessera/io/vector_file.h"
#include "tessera/lattice/metric.h"

namespace tessera::lattice {

// Scales rows (n, dim) to length 1 where the metric is cosine; a row of length 0 is an error that
// names it, counted from `first_row`.
void prepare_points(Metric metric, std::span<float> rows, int64_t dim, int64_t first_row = 0);

// `count` different row numbers of [0, n), ascending: one drawn from each of `count` stretches of
// equal length (to one row). REQUIRES: 1 <= count <= n.
std::vector<int64_t> sample_rows(int64_t n, int64_t count, uint64_t seed);

// Prepared rows of these numbers, (numbers, dim).
std::vector<float> read_points(const VectorFile& file, Metric metric,
                               std::span<const int64_t> numbers);

// Calls body(first row, rows (count, dim), prepared) for chunk after chunk of the file, each of at
// most `memory` bytes, or of one row where not even that fits.
void for_each_chunk(const VectorFile& file, Metric metric, int64_t memory,
                    const std::function<void(int64_t, std::span<const float>)>& body);

}  // namespace tessera::lattice
