// The steps of training, each a function over arrays that stay where they are: points, their cells
// and distances are large and never move, anchors are small, and only scalars come back. Sums are
// taken in an order that depends on the data alone, so that every number of threads gives the same
// bits.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace tessera::lattice {

struct Points {
  std::span<const float> data;  // (n, dim)
  int64_t dim;

  int64_t count() const { return int64_t(data.size()) / dim; }
  const float* row(int64_t i) const { return data.data() + i * dim; }
};

// Which cell each point is in, and how far from the cell's anchor.
struct Assignment {
  std::vector<int32_t> cells;    // (n); before the first assignment -1
  std::vector<float> distances;  // (n), squared

  explicit Assignment(int64_t n) : cells(size_t(n), -1), distances(size_t(n)) {}
};

struct AssignResult {
  double energy;  // the mean squared distance
  int64_t moved;  // points whose cell changed
};
AssignResult assign(const Points& points, std::span<const float> anchors, Assignment& to);

// The points of cell j are rows[begin[j]] … rows[begin[j + 1] - 1], ascending.
struct CellOrder {
  std::vector<int64_t> begin;  // (m + 1)
  std::vector<int64_t> rows;   // (n)

  int64_t count() const { return int64_t(begin.size()) - 1; }
  int64_t size(int64_t cell) const { return begin[size_t(cell) + 1] - begin[size_t(cell)]; }
  std::span<const int64_t> rows_of(int64_t cell) const {
    return std::span(rows).subspan(size_t(begin[size_t(cell)]), size_t(size(cell)));
  }
};
// A counting sort; `to` keeps its memory.
void sort_by_cell(std::span<const int32_t> cells, int64_t cell_count, CellOrder& to);

// Which points count for a cell's mean, and how much.
struct Robustness {
  double trim = 0;  // the fraction left out at both ends of a cell's distance order, rounded down
  // Points farther than this count with a weight of huber / distance; infinity: all with 1.
  double huber = std::numeric_limits<double>::infinity();
};

// means: (m, dim). Of a cell that is empty, or whose weights all vanish, it keeps what it held.
void plain_means(const Points& points, const CellOrder& order, std::span<float> means);
void robust_means(const Points& points, const Assignment& assignment, const CellOrder& order,
                  const Robustness& robustness, std::span<float> means);

// Moves the anchors of empty cells onto points far from theirs: of each empty cell in turn, onto
// the farthest point of the cell with the largest sum of squared distances that was not yet used.
// The energy of the next assignment is no larger for it. Returns how many were moved.
int64_t reseed_empty(const Points& points, const Assignment& assignment, const CellOrder& order,
                     std::span<float> anchors);

// velocity = momentum * velocity + clamp(gain * (mean - anchor), ±largest); anchor += velocity.
struct UpdateRule {
  double gain, largest, momentum;
};
void update(std::span<const float> means, const UpdateRule& rule, std::span<float> velocity,
            std::span<float> anchors);

}  // namespace tessera::lattice
