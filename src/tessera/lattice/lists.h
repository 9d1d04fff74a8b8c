// What a search reads: the lists of an index, wherever they live; and lists in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "tessera/lattice/metric.h"
#include "tessera/lattice/quantize.h"

namespace tessera::lattice {

// `count` vectors in blocks, 64-byte aligned. Codes of 0 bits have no blocks.
struct ListView {
  int64_t count = 0;
  const std::byte* blocks = nullptr;
};

// A cell may have several lists (a base and what was added later); positions count through them.
struct SearchIndex {
  const Coder* coder = nullptr;
  Metric metric = Metric::l2;
  std::span<const float> anchors;    // (cells, dim), as trained
  std::span<const float> diagonals;  // (cells, dim) or empty
  std::function<std::span<const ListView>(int32_t cell)> lists;
  std::function<void(int32_t cell, std::span<int64_t> ids)> ids;  // all of a cell's, in order
  std::function<int64_t(int32_t cell, int64_t position)> id;      // one of them

  int32_t cells() const { return int32_t(anchors.size() / size_t(coder->spec().dim)); }
  int64_t count(int32_t cell) const;
};

// Owns lists. points: (n, dim), scaled to length 1 already where the metric is cosine; cells: (n);
// ids: (n), or empty for 0, 1, …
class MemoryLists {
 public:
  MemoryLists(const Coder& coder, Metric metric, std::span<const float> anchors,
              std::span<const float> points, std::span<const int32_t> cells,
              std::span<const int64_t> ids = {}, std::span<const float> diagonals = {});

  // Valid as long as this, the coder, the anchors and the diagonals.
  SearchIndex index() const;
  int64_t bytes() const { return int64_t(lines_.size() * sizeof(Line)); }

 private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };

  const Coder& coder_;
  Metric metric_;
  std::span<const float> anchors_, diagonals_;
  std::vector<Line> lines_;
  std::vector<ListView> views_;    // (cells)
  std::vector<int64_t> ids_;       // sorted by cell
  std::vector<int64_t> first_id_;  // (cells + 1), into ids_
};

// For each cell and dimension, how much its transformed residuals vary, over the cell's mean, times
// how fine its bits make the steps: the diagonals above. Points (n, dim) of a sample; a cell of few
// points gets less of its own and more of everyone's. (cells, dim), rounded to f16.
std::vector<float> train_diagonals(const Coder& coder, std::span<const float> anchors,
                                   std::span<const float> points, std::span<const int32_t> cells);

}  // namespace tessera::lattice
