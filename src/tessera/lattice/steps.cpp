#include "tessera/lattice/steps.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/base/thread_pool.h"
#include "tessera/lattice/nearest.h"

namespace tessera::lattice {

namespace {

constexpr int64_t kPart = 16384;      // points whose sums are taken in one go
constexpr int64_t kRowsInFloat = 32;  // rows summed in f32 before their sum is added in f64

// Adds up weight * row, in f32 for a few rows at a time: fast, and as good as f64 for large cells.
class RowSum {
 public:
  explicit RowSum(int64_t dim) : few_(size_t(dim)), all_(size_t(dim)) {}

  void clear() {
    std::ranges::fill(few_, 0.0f);
    std::ranges::fill(all_, 0.0);
    rows_ = 0;
    weight_ = 0;
  }

  void add(const float* row) {
    float* sum = few_.data();
    for (size_t p = 0; p < few_.size(); ++p) sum[p] += row[p];
    count(1);
  }

  void add(const float* row, float weight) {
    float* sum = few_.data();
    for (size_t p = 0; p < few_.size(); ++p) sum[p] += weight * row[p];
    count(double(weight));
  }

  // The weighted mean; nothing where all weights were 0.
  void store_mean(float* to) {
    if (!(weight_ > 0)) return;
    flush();
    for (size_t p = 0; p < all_.size(); ++p) to[p] = float(all_[p] / weight_);
  }

 private:
  void count(double weight) {
    weight_ += weight;
    if (++rows_ == kRowsInFloat) flush();
  }

  void flush() {
    for (size_t p = 0; p < all_.size(); ++p) all_[p] += double(few_[p]);
    std::ranges::fill(few_, 0.0f);
    rows_ = 0;
  }

  std::vector<float> few_;
  std::vector<double> all_;
  int64_t rows_ = 0;
  double weight_ = 0;
};

// Memory is what a sum waits for: rows of a cell lie far apart.
void prefetch_row(const Points& points, std::span<const int64_t> rows, size_t i) {
  constexpr size_t kAhead = 6, kLine = 64 / sizeof(float), kMostLines = 16;
  if (i + kAhead >= rows.size()) return;
  const float* row = points.row(rows[i + kAhead]);
  const size_t lines = std::min(kMostLines, (size_t(points.dim) + kLine - 1) / kLine);
  for (size_t line = 0; line < lines; ++line) __builtin_prefetch(row + line * kLine);
}

// A place in the distance order of a cell.
using Place = std::pair<float, int64_t>;  // squared distance, row

// The first and the last place that are not trimmed.
std::pair<Place, Place> trimmed_range(std::span<const int64_t> rows,
                                      std::span<const float> distances, double trim,
                                      std::vector<Place>& places) {
  places.clear();
  for (const int64_t row : rows) places.emplace_back(distances[size_t(row)], row);
  const auto left_out = int64_t(trim * double(rows.size()));
  const auto first = places.begin() + left_out, last = places.end() - 1 - left_out;
  std::nth_element(places.begin(), first, places.end());
  const Place lowest = *first;
  std::nth_element(first, last, places.end());
  return {lowest, *last};
}

}  // namespace

AssignResult assign(const Points& points, std::span<const float> anchors, Assignment& to) {
  const int64_t n = points.count();
  TESSERA_ASSERT(int64_t(to.cells.size()) == n);
  const NearestAnchors nearest(anchors, points.dim);
  std::vector<int32_t> before = to.cells;
  nearest.find(points.data, to.cells, to.distances);
  AssignResult result = {0, 0};
  for (int64_t begin = 0; begin < n; begin += kPart) {
    double sum = 0;
    for (int64_t i = begin; i < std::min(begin + kPart, n); ++i) {
      sum += double(to.distances[size_t(i)]);
      result.moved += before[size_t(i)] != to.cells[size_t(i)];
    }
    result.energy += sum;
  }
  result.energy /= double(n);
  return result;
}

void sort_by_cell(std::span<const int32_t> cells, int64_t cell_count, CellOrder& to) {
  to.begin.assign(size_t(cell_count) + 1, 0);
  to.rows.resize(cells.size());
  for (const int32_t cell : cells) ++to.begin[size_t(cell) + 1];
  for (size_t j = 1; j < to.begin.size(); ++j) to.begin[j] += to.begin[j - 1];
  std::vector<int64_t> next(to.begin.begin(), to.begin.end() - 1);
  for (size_t i = 0; i < cells.size(); ++i) {
    to.rows[size_t(next[size_t(cells[i])]++)] = int64_t(i);
  }
}

void plain_means(const Points& points, const CellOrder& order, std::span<float> means) {
  thread_pool().parallel_for(order.count(), 1, [&](int64_t begin, int64_t end) {
    RowSum sum(points.dim);
    for (int64_t cell = begin; cell < end; ++cell) {
      const auto rows = order.rows_of(cell);
      if (rows.empty()) continue;
      sum.clear();
      for (size_t i = 0; i < rows.size(); ++i) {
        prefetch_row(points, rows, i);
        sum.add(points.row(rows[i]));
      }
      sum.store_mean(means.data() + cell * points.dim);
    }
  });
}

void robust_means(const Points& points, const Assignment& assignment, const CellOrder& order,
                  const Robustness& robustness, std::span<float> means) {
  const std::span<const float> distances = assignment.distances;
  thread_pool().parallel_for(order.count(), 1, [&](int64_t begin, int64_t end) {
    RowSum sum(points.dim);
    std::vector<Place> places;
    for (int64_t cell = begin; cell < end; ++cell) {
      const auto rows = order.rows_of(cell);
      if (rows.empty()) continue;
      const auto [first, last] = trimmed_range(rows, distances, robustness.trim, places);
      sum.clear();
      for (size_t i = 0; i < rows.size(); ++i) {
        prefetch_row(points, rows, i);
        const float squared = distances[size_t(rows[i])];
        const Place place = {squared, rows[i]};
        if (place < first || last < place) continue;
        const double distance = std::sqrt(double(squared));
        const bool near = distance <= robustness.huber;
        sum.add(points.row(rows[i]), near ? 1.0f : float(robustness.huber / distance));
      }
      sum.store_mean(means.data() + cell * points.dim);
    }
  });
}

int64_t reseed_empty(const Points& points, const Assignment& assignment, const CellOrder& order,
                     std::span<float> anchors) {
  std::vector<int64_t> empty;
  for (int64_t cell = 0; cell < order.count(); ++cell) {
    if (order.size(cell) == 0) empty.push_back(cell);
  }
  if (empty.empty()) return 0;
  std::vector<std::pair<double, int64_t>> inertia;  // negated, for ascending order
  for (int64_t cell = 0; cell < order.count(); ++cell) {
    double sum = 0;
    for (const int64_t row : order.rows_of(cell)) sum += double(assignment.distances[size_t(row)]);
    if (sum > 0) inertia.emplace_back(-sum, cell);
  }
  std::ranges::sort(inertia);
  const size_t count = std::min(empty.size(), inertia.size());
  for (size_t i = 0; i < count; ++i) {
    const auto rows = order.rows_of(inertia[i].second);
    const int64_t farthest = *std::ranges::max_element(
        rows, {}, [&](int64_t row) { return assignment.distances[size_t(row)]; });
    std::copy_n(points.row(farthest), points.dim, anchors.begin() + empty[i] * points.dim);
  }
  return int64_t(count);
}

void update(std::span<const float> means, const UpdateRule& rule, std::span<float> velocity,
            std::span<float> anchors) {
  TESSERA_ASSERT(means.size() == anchors.size() && velocity.size() == anchors.size());
  for (size_t i = 0; i < anchors.size(); ++i) {
    const double step = rule.gain * (double(means[i]) - double(anchors[i]));
    velocity[i] =
        float(rule.momentum * double(velocity[i]) + std::clamp(step, -rule.largest, rule.largest));
    anchors[i] += velocity[i];
  }
}

}  // namespace tessera::lattice
