#include "tessera/lattice/merge_split.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <tuple>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/base/thread_pool.h"
#include "tessera/lattice/nearest.h"

namespace tessera::lattice {

namespace {

constexpr int kPowerSteps = 6;
constexpr int64_t kMostDirectionRows = 512;  // of a cell, evenly spaced, that give its direction
constexpr double kSplitOffset = 0.8;         // the means of the halves of a normal distribution

struct Pair {
  float distance;  // squared
  int32_t a, b;    // a < b

  auto key() const { return std::tuple(distance, a, b); }
};

// Each anchor with its nearest other.
std::vector<Pair> nearest_pairs(std::span<const float> anchors, int64_t dim) {
  const int64_t m = int64_t(anchors.size()) / dim;
  if (m < 2) return {};
  std::vector<int32_t> cells(static_cast<size_t>(2 * m));
  std::vector<float> distances(cells.size());
  NearestAnchors(anchors, dim).find_few(anchors, 2, cells, distances);
  std::vector<Pair> pairs;
  for (int32_t j = 0; j < int32_t(m); ++j) {
    const size_t at = 2 * size_t(j);
    // Of equal anchors, the later ones find two others.
    const size_t other = cells[at] == j ? at + 1 : at;
    pairs.push_back({distances[other], std::min(j, cells[other]), std::max(j, cells[other])});
  }
  return pairs;
}

class Adjuster {
 public:
  Adjuster(const Points& points, const CellOrder& order, const Assignment& assignment,
           MovingAnchors& anchors)
      : points_(points),
        order_(order),
        anchors_(anchors),
        dim_(points.dim),
        count_(order.count()),
        touched_(size_t(count_)),
        inertia_(size_t(count_)) {
    TESSERA_ASSERT(int64_t(anchors.data.size()) == count_ * dim_);
    for (int64_t cell = 0; cell < count_; ++cell) {
      for (const int64_t row : order.rows_of(cell)) {
        inertia_[size_t(cell)] += double(assignment.distances[size_t(row)]);
      }
    }
  }

  int64_t merge(double closeness, int64_t fewest) {
    int64_t splittable = count_ - std::ranges::count(inertia_, 0.0);
    std::vector<Pair> pairs = nearest_pairs(anchors_.data, dim_);
    double spacing = 0;
    for (const Pair& pair : pairs) spacing += std::sqrt(double(pair.distance));
    spacing /= double(std::max<size_t>(1, pairs.size()));
    std::ranges::sort(pairs, {}, &Pair::key);
    for (const Pair& pair : pairs) {
      if (!(std::sqrt(double(pair.distance)) < closeness * spacing)) break;
      if (touched_[size_t(pair.a)] || touched_[size_t(pair.b)]) continue;
      splittable -= (inertia_[size_t(pair.a)] > 0) + (inertia_[size_t(pair.b)] > 0);
      // Enough cells must be left to make up for the slots.
      if (count_ - std::ssize(free_) - 1 + splittable < fewest) break;
      merge_pair(pair.a, pair.b);
    }
    return int64_t(free_.size());
  }

  int64_t split(const MergeSplitRule& rule) {
    std::vector<int64_t> cells;
    for (int64_t cell = 0; cell < count_; ++cell) {
      if (!touched_[size_t(cell)] && inertia_[size_t(cell)] > 0) cells.push_back(cell);
    }
    std::ranges::stable_sort(cells, std::greater<>(),
                             [&](int64_t cell) { return inertia_[size_t(cell)]; });
    // Slots are given out in order before any cell is split, so that splits can run side by side.
    std::vector<std::pair<int64_t, int64_t>> splits;  // cell, slot
    int64_t total = count_ - int64_t(free_.size());
    const double crowd = 2 * double(points_.count()) / double(count_);
    for (const bool forced : {false, true}) {
      for (const int64_t cell : cells) {
        if (total >= (forced ? rule.fewest : rule.most)) break;
        const double size = double(order_.size(cell));
        const bool wants = size > crowd || inertia_[size_t(cell)] / size > rule.variance;
        if (wants == forced) continue;  // the second round takes those that do not qualify
        splits.emplace_back(cell, take_slot());
        ++total;
      }
    }
    thread_pool().parallel_for(std::ssize(splits), 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        split_cell(splits[size_t(i)].first, splits[size_t(i)].second);
      }
    });
    return std::ssize(splits);
  }

  // Closes the slots that are still free, and renumbers.
  void compact(std::vector<int32_t>& cells) {
    if (free_.empty()) return;
    std::vector<int32_t> renumbered(static_cast<size_t>(slots()));
    std::ranges::sort(free_);
    int32_t to = 0;
    for (int64_t slot = 0; slot < slots(); ++slot) {
      renumbered[size_t(slot)] = -1;
      if (std::ranges::binary_search(free_, slot)) continue;
      std::copy_n(at(anchors_.data, slot), dim_, at(anchors_.data, to));
      std::copy_n(at(anchors_.velocity, slot), dim_, at(anchors_.velocity, to));
      renumbered[size_t(slot)] = to++;
    }
    anchors_.data.resize(size_t(to * dim_));
    anchors_.velocity.resize(size_t(to * dim_));
    for (int32_t& cell : cells) cell = renumbered[size_t(cell)];
  }

 private:
  int64_t slots() const { return std::ssize(anchors_.data) / dim_; }
  float* at(std::vector<float>& rows, int64_t slot) const { return rows.data() + slot * dim_; }

  void merge_pair(int64_t a, int64_t b) {
    const double sizes[] = {double(order_.size(a)), double(order_.size(b))};
    const double both = sizes[0] + sizes[1];
    const double share = both > 0 ? sizes[1] / both : 0.5;
    float *to = at(anchors_.data, a), *from = at(anchors_.data, b);
    for (int64_t p = 0; p < dim_; ++p) {
      to[p] = float(double(to[p]) + share * (double(from[p]) - double(to[p])));
    }
    std::fill_n(at(anchors_.velocity, a), dim_, 0.0f);
    touched_[size_t(a)] = touched_[size_t(b)] = true;
    free_.push_back(b);
  }

  int64_t take_slot() {
    if (!free_.empty()) {
      const int64_t slot = free_.front();
      free_.erase(free_.begin());
      return slot;
    }
    const int64_t slot = slots();
    anchors_.data.resize(size_t((slot + 1) * dim_));
    anchors_.velocity.resize(size_t((slot + 1) * dim_));
    return slot;
  }

  // The direction of largest variance around the anchor, by power iteration from its farthest row,
  // and the standard deviation along it.
  double direction(int64_t cell, std::vector<double>& along) {
    const auto rows = order_.rows_of(cell);
    const float* anchor = at(anchors_.data, cell);
    const int64_t count = std::min(std::ssize(rows), kMostDirectionRows);
    const auto row = [&](int64_t i) {
      return points_.row(rows[size_t(i * std::ssize(rows) / count)]);
    };
    double longest = -1;
    std::vector<double> next(static_cast<size_t>(dim_));
    for (int64_t i = 0; i < count; ++i) {
      double squares = 0;
      for (int64_t p = 0; p < dim_; ++p) {
        next[size_t(p)] = double(row(i)[p]) - double(anchor[p]);
        squares += next[size_t(p)] * next[size_t(p)];
      }
      if (squares > longest) {
        longest = squares;
        along = next;
      }
    }
    double variance = 0;
    for (int step = 0; step < kPowerSteps && scale_to_unit(along); ++step) {
      std::ranges::fill(next, 0.0);
      variance = 0;
      for (int64_t i = 0; i < count; ++i) {
        double dot = 0;
        for (int64_t p = 0; p < dim_; ++p) {
          dot += along[size_t(p)] * (double(row(i)[p]) - double(anchor[p]));
        }
        for (int64_t p = 0; p < dim_; ++p) {
          next[size_t(p)] += dot * (double(row(i)[p]) - double(anchor[p]));
        }
        variance += dot * dot / double(count);
      }
      std::swap(along, next);
    }
    scale_to_unit(along);
    return std::sqrt(variance);
  }

  static bool scale_to_unit(std::vector<double>& vector) {
    double squares = 0;
    for (const double x : vector) squares += x * x;
    if (!(squares > 0)) return false;
    for (double& x : vector) x /= std::sqrt(squares);
    return true;
  }

  void split_cell(int64_t cell, int64_t slot) {
    std::vector<double> along;
    const double offset = kSplitOffset * direction(cell, along);
    float *left = at(anchors_.data, cell), *right = at(anchors_.data, slot);
    for (int64_t p = 0; p < dim_; ++p) {
      const double centre = double(left[p]), step = offset * along[size_t(p)];
      left[p] = float(centre - step);
      right[p] = float(centre + step);
    }
    std::fill_n(at(anchors_.velocity, cell), dim_, 0.0f);
    std::fill_n(at(anchors_.velocity, slot), dim_, 0.0f);
  }

  const Points& points_;
  const CellOrder& order_;
  MovingAnchors& anchors_;
  int64_t dim_, count_;
  std::vector<char> touched_;    // merged just now: its cell is no longer what `order_` says
  std::vector<double> inertia_;  // of each cell, the sum of squared distances
  std::vector<int64_t> free_;
};

}  // namespace

MergeSplitResult merge_and_split(const Points& points, const CellOrder& order,
                                 const MergeSplitRule& rule, Assignment& assignment,
                                 MovingAnchors& anchors) {
  Adjuster adjuster(points, order, assignment, anchors);
  const int64_t merged = adjuster.merge(rule.closeness, rule.fewest);
  const int64_t split = adjuster.split(rule);
  adjuster.compact(assignment.cells);
  return {merged, split};
}

}  // namespace tessera::lattice
