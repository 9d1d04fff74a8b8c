// Anchors as a NearestKernel reads them, with the facts that bound the error of its scores.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <vector>

#include "tessera/lattice/metric.h"
#include "tessera/lattice/nearest_kernels.h"

namespace tessera::lattice {

// Zeroed numbers that begin at a cache line: no vector of them lies across two lines.
template <class T>
class AlignedArray {
 public:
  explicit AlignedArray(size_t size)
      : data_(static_cast<T*>(::operator new(size * sizeof(T), std::align_val_t(64)))) {
    std::fill_n(data_.get(), size, T());
  }
  T* data() const { return data_.get(); }

 private:
  struct Free {
    void operator()(T* p) const { ::operator delete(p, std::align_val_t(64)); }
  };
  std::unique_ptr<T, Free> data_;
};

struct AnchorPack {
  const NearestKernel* kernel;
  int64_t depth, panel_count;
  AlignedArray<std::byte> panels;
  AlignedArray<float> start;  // (panel_count, columns)
  std::vector<float> centre;  // (dim): what is subtracted from points and anchors; 0 but for l2

  // Upper bounds over all anchors, c being anchor - centre:
  double longest;        // |c|
  double rounding;       // |c as it is stored - c|
  double largest_start;  // |start|

  int64_t row_bytes() const { return depth * (kernel->halves ? 2 : 4); }
  ScoreBlock block(const void* points, int64_t rows) const {
    return {points, rows, depth, panels.data(), start.data(), panel_count};
  }
};

AnchorPack pack_anchors(const NearestKernel& kernel, std::span<const float> anchors, int64_t dim,
                        Metric metric);

}  // namespace tessera::lattice
