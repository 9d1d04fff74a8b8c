// The k smallest keys seen, in an order without ties, so that results do not depend on the order
// in which candidates come.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <tuple>
#include <vector>

namespace tessera::lattice {

struct Candidate {
  float key;
  int32_t cell;
  int64_t position;

  friend bool operator<(const Candidate& a, const Candidate& b) {
    return std::tie(a.key, a.cell, a.position) < std::tie(b.key, b.cell, b.position);
  }
};

class TopK {
 public:
  static constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();

  // Keeps the best k of those with keys up to `limit`.
  explicit TopK(int64_t k = 0, float limit = std::numeric_limits<float>::infinity())
      : k_(k), limit_(limit) {}

  int64_t size() const { return int64_t(heap_.size()); }
  bool full() const { return size() == k_; }
  TopK like() const { return TopK(k_, limit_); }  // an empty one
  void clear() { heap_.clear(); }

  // No candidate with a larger key can enter.
  float threshold() const { return full() && k_ > 0 ? heap_.front().key : limit_; }

  void offer(const Candidate& candidate) {
    if (candidate.key > limit_) return;
    if (!full()) {
      heap_.push_back(candidate);
      if (k_ != kUnlimited) std::push_heap(heap_.begin(), heap_.end());
    } else if (k_ > 0 && candidate < heap_.front()) {
      std::pop_heap(heap_.begin(), heap_.end());
      heap_.back() = candidate;
      std::push_heap(heap_.begin(), heap_.end());
    }
  }

  void merge(const TopK& other) {
    for (const Candidate& c : other.heap_) offer(c);
  }

  // Best first; leaves none behind.
  std::vector<Candidate> take() {
    std::sort(heap_.begin(), heap_.end());
    return std::move(heap_);
  }

 private:
  int64_t k_;
  float limit_;
  std::vector<Candidate> heap_;  // the worst first
};

}  // namespace tessera::lattice
