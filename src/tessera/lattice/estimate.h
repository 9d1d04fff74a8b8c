// The estimator in plain words, one vector at a time: what scans approximate with 8-bit queries,
// what survivors are measured with again, and what tests compare with. Derived, with its bound, in
// docs/lattice_codes.md.
#pragma once

#include <cstdint>
#include <span>

#include "tessera/lattice/code_layout.h"
#include "tessera/lattice/metric.h"

namespace tessera::lattice {

// A key is what search sorts by, smaller first: squared l2, or minus the score.
inline bool larger_is_better(Metric metric) { return metric != Metric::l2; }
inline float key_of(Metric metric, float value) {
  return larger_is_better(metric) ? -value : value;
}

// Squared l2, the inner product, or the cosine of two vectors (dim).
float true_distance(Metric metric, std::span<const float> a, std::span<const float> b);

// <query, r̂> in steps: query (padded_dim) is transformed (for l2 the difference to the anchor),
// codes (padded_dim); diagonal empty or (padded_dim).
float code_product(const CodeSpec& spec, std::span<const uint8_t> codes,
                   std::span<const float> query, std::span<const float> diagonal);

// The key of a vector. base: |q - anchor|², or -<q, anchor>.
float estimate_key(Metric metric, float base, CodeFactors factors, float product);

// Of a bound on keys by top bits alone: 6 of 1,000 lie below it.
constexpr float kHotEpsilon = 2.5f;

// |estimate - true squared distance| is below this for 94 of 100 rotations. cosine: of r and r̂.
float error_bound(float residual_length, float query_distance, float cosine, int32_t dim);

}  // namespace tessera::lattice
