// Which of m anchors a point is nearest to: a blocked matrix product with the argmin in its
// epilogue. No (n, m) matrix is ever in memory.
//
// The answer does not depend on the instruction set, on the number of threads, or on the precision
// of the product: it is the anchor of the smallest squared distance (or the largest inner product)
// as distance_kernel() computes it, and the first of equal ones. The product, in f32 or bf16, only
// narrows down the candidates, by a margin that its rounding cannot cross
// (docs/lattice_anchors.md).
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "tessera/lattice/metric.h"

namespace tessera::lattice {

struct NearestKernel;

// Anchors made ready for many searches. Const members may be called from several threads at once.
class NearestAnchors {
 public:
  // anchors: (m, dim), finite, m from 1 to 2^31 - 1 in all; copied. For cosine they are compared by
  // inner product, as they are. `kernel` (tests choose one): by default the best that is available.
  NearestAnchors(std::span<const float> anchors, int64_t dim, Metric metric = Metric::l2,
                 const NearestKernel* kernel = nullptr);
  ~NearestAnchors();
  NearestAnchors(NearestAnchors&&) noexcept;
  NearestAnchors& operator=(NearestAnchors&&) noexcept;

  int64_t count() const;
  int64_t dim() const;

  // points: (n, dim), finite; cells: (n); values: (n), squared distances, or inner products.
  void find(std::span<const float> points, std::span<int32_t> cells, std::span<float> values) const;

  // The `few` nearest anchors of each point, the nearest first: cells and values are (n, few).
  // Throws unless few is from 1 to count().
  void find_few(std::span<const float> points, int64_t few, std::span<int32_t> cells,
                std::span<float> values) const;

 private:
  struct State;
  std::unique_ptr<const State> state_;
};

}  // namespace tessera::lattice
