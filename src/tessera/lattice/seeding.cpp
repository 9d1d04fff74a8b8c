#include "tessera/lattice/seeding.h"

#include <algorithm>
#include <limits>
#include <queue>

#include "tessera/base/error.h"
#include "tessera/base/thread_pool.h"
#include "tessera/lattice/draws.h"
#include "tessera/lattice/nearest.h"
#include "tessera/lattice/nearest_kernels.h"

namespace tessera::lattice {

namespace {

constexpr size_t kMostPending = 128;  // seeds that distances are brought up to date for at once
constexpr int kMostRefusals = 16;     // then the distances are too old
constexpr size_t kBlock = 256;        // weights that share one entry of the running sums
constexpr int64_t kGrain = 512;       // rows that are worth a task

// Points to draw from, with their squared distances from the seeds that were counted in.
class Weights {
 public:
  Weights(std::span<const float> points, int64_t dim)
      : points_(points),
        dim_(dim),
        values_(points.size() / size_t(dim), std::numeric_limits<float>::infinity()),
        cells_(values_.size()),
        distances_(values_.size()) {}

  int64_t count() const { return int64_t(values_.size()); }
  double total() const { return sums_.empty() ? 0 : sums_.back(); }
  float at(int64_t i) const { return values_[size_t(i)]; }
  const float* point(int64_t i) const { return points_.data() + i * dim_; }

  void include(std::span<const int64_t> seeds) {
    std::vector<float> anchors;
    for (const int64_t seed : seeds) {
      anchors.insert(anchors.end(), point(seed), point(seed) + dim_);
    }
    NearestAnchors(anchors, dim_).find(points_, cells_, distances_);
    sums_.clear();
    double sum = 0;
    for (size_t i = 0; i < values_.size(); ++i) {
      values_[i] = std::min(values_[i], distances_[i]);
      sum += double(values_[i]);
      if (i % kBlock == kBlock - 1 || i + 1 == values_.size()) sums_.push_back(sum);
    }
  }

  // The row in which a fraction of the total lies; never one of weight 0.
  int64_t find(double fraction) const {
    const double aim = fraction * total();
    const auto block = std::ranges::upper_bound(sums_, aim) - sums_.begin();
    if (block == std::ssize(sums_)) return last_positive();
    size_t i = size_t(block) * kBlock;
    double sum = block == 0 ? 0 : sums_[size_t(block) - 1];
    const size_t end = std::min(i + kBlock, values_.size());
    size_t positive = i;
    for (; i < end; ++i) {
      sum += double(values_[i]);
      if (values_[i] > 0) positive = i;
      if (sum > aim) return int64_t(positive);
    }
    return int64_t(positive);
  }

 private:
  int64_t last_positive() const {
    size_t i = values_.size() - 1;
    while (i > 0 && !(values_[i] > 0)) --i;
    return int64_t(i);
  }

  std::span<const float> points_;
  int64_t dim_;
  std::vector<float> values_;
  std::vector<double> sums_;
  std::vector<int32_t> cells_;
  std::vector<float> distances_;
};

class PlusPlus {
 public:
  PlusPlus(std::span<const float> points, int64_t dim, uint64_t seed)
      : weights_(points, dim), dim_(dim), draws_(seed, Draws::Purpose::seeding) {}

  std::vector<int64_t> choose(int64_t count) {
    add(draws_.below(weights_.count()));
    while (int64_t(chosen_.size()) < count) add(draw());
    return chosen_;
  }

 private:
  void add(int64_t row) {
    chosen_.push_back(row);
    pending_.push_back(row);
    // A few new seeds among many change few distances, and most draws are accepted.
    if (pending_.size() >= std::clamp<size_t>(chosen_.size() / 4, 1, kMostPending)) refresh();
  }

  void refresh() {
    weights_.include(pending_);
    pending_.clear();
  }

  int64_t draw() {
    for (int refusals = 0;; ++refusals) {
      if (refusals == kMostRefusals && !pending_.empty()) refresh();
      if (!(weights_.total() > 0)) return draws_.below(weights_.count());
      const int64_t row = weights_.find(draws_.unit());
      const float old_weight = weights_.at(row);
      if (draws_.unit() * double(old_weight) < double(current_weight(row))) return row;
    }
  }

  float current_weight(int64_t row) const {
    float weight = weights_.at(row);
    for (const int64_t seed : pending_) {
      weight = std::min(weight, distance_kernel().squared_distance(weights_.point(row),
                                                                   weights_.point(seed), dim_));
    }
    return weight;
  }

  Weights weights_;
  int64_t dim_;
  Draws draws_;
  std::vector<int64_t> chosen_, pending_;
};

// A point with a distance that is right for the first `seen` seeds, and too large for more at most.
struct Far {
  float distance;
  int64_t row;
  int64_t seen;

  bool operator<(const Far& other) const {
    return distance != other.distance ? distance < other.distance : row > other.row;
  }
};

}  // namespace

std::vector<int64_t> plus_plus(std::span<const float> points, int64_t dim, int64_t count,
                               uint64_t seed) {
  TESSERA_ASSERT(count >= 1 && count <= int64_t(points.size()) / dim);
  return PlusPlus(points, dim, seed).choose(count);
}

std::vector<int64_t> farthest_first(std::span<const float> points, int64_t dim, int64_t count,
                                    uint64_t seed) {
  const int64_t n = int64_t(points.size()) / dim;
  TESSERA_ASSERT(count >= 1 && count <= n);
  const auto distance = [&](int64_t a, int64_t b) {
    return distance_kernel().squared_distance(points.data() + a * dim, points.data() + b * dim,
                                              dim);
  };
  std::vector<int64_t> chosen = {Draws(seed, Draws::Purpose::seeding).below(n)};
  std::vector<Far> far(static_cast<size_t>(n));
  thread_pool().parallel_for(n, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) far[size_t(i)] = {distance(i, chosen[0]), i, 1};
  });
  far.erase(far.begin() + chosen[0]);
  std::priority_queue<Far> queue(std::less<Far>(), std::move(far));
  while (int64_t(chosen.size()) < count) {
    Far top = queue.top();
    queue.pop();
    if (top.seen == int64_t(chosen.size())) {
      chosen.push_back(top.row);
      continue;
    }
    for (; top.seen < int64_t(chosen.size()); ++top.seen) {
      top.distance = std::min(top.distance, distance(top.row, chosen[size_t(top.seen)]));
    }
    queue.push(top);
  }
  return chosen;
}

}  // namespace tessera::lattice
