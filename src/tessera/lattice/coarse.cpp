#include "tessera/lattice/coarse.h"

#include <algorithm>
#include <limits>

#include "tessera/base/error.h"
#include "tessera/base/thread_pool.h"
#include "tessera/lattice/code_kernels.h"

namespace tessera::lattice {

namespace {

constexpr int64_t kQueries = 8;  // multiplied at a time

struct Ranked {
  float key;
  int32_t cell;

  friend bool operator<(const Ranked& a, const Ranked& b) {
    return a.key < b.key || (a.key == b.key && a.cell < b.cell);
  }
};

// The `count` smallest of keys, in order. Most are turned away by one comparison: of twice `count`
// groups of keys, the count-th smallest minimum is no smaller than the count-th smallest key.
class Selection {
 public:
  std::span<const Ranked> select(std::span<const float> keys, size_t count) {
    const size_t groups = 2 * count, n = keys.size();
    float bound = std::numeric_limits<float>::infinity();
    if (2 * groups <= n) {
      least_.assign(keys.begin(), keys.begin() + int64_t(groups));
      for (size_t first = groups; first < n; first += groups) {
        const size_t width = std::min(groups, n - first);
        for (size_t i = 0; i < width; ++i) least_[i] = std::min(least_[i], keys[first + i]);
      }
      const auto last = least_.begin() + int64_t(count) - 1;
      std::nth_element(least_.begin(), last, least_.end());
      bound = *last;
    }
    ranked_.resize(n + 1);
    size_t found = 0;
    for (size_t i = 0; i < n; ++i) {
      ranked_[found] = {keys[i], int32_t(i)};
      found += keys[i] <= bound ? 1 : 0;
    }
    const auto end = ranked_.begin() + int64_t(found), cut = ranked_.begin() + int64_t(count);
    if (found > count) std::nth_element(ranked_.begin(), cut, end);
    std::sort(ranked_.begin(), cut);
    return std::span(ranked_).first(count);
  }

 private:
  std::vector<float> least_;
  std::vector<Ranked> ranked_;
};

}  // namespace

std::vector<Probe> nearest_cells(Metric metric, int32_t padded_dim, std::span<const float> anchors,
                                 std::span<const float> anchor_n2, std::span<const float> queries,
                                 int32_t count) {
  const auto cells = int64_t(anchor_n2.size()), n = int64_t(queries.size()) / padded_dim;
  TESSERA_ASSERT(count >= 1 && count <= cells);
  std::vector<Probe> result(size_t(n) * size_t(count));
  const bool squares = metric != Metric::inner_product;
  thread_pool().parallel_for((n + kQueries - 1) / kQueries, 1, [&](int64_t begin, int64_t end) {
    std::vector<float> products(size_t(kQueries * cells));
    std::vector<float> keys(static_cast<size_t>(cells));
    Selection selection;
    for (int64_t q0 = begin * kQueries; q0 < std::min(n, end * kQueries); q0 += kQueries) {
      const int64_t rows = std::min(kQueries, n - q0);
      code_kernels().products(padded_dim, &queries[size_t(q0 * padded_dim)], rows, anchors.data(),
                              cells, products.data(), cells);
      for (int64_t q = 0; q < rows; ++q) {
        const float* dots = &products[size_t(q * cells)];
        for (int64_t c = 0; c < cells; ++c) {
          keys[size_t(c)] = squares ? anchor_n2[size_t(c)] - 2 * dots[c] : -dots[c];
        }
        Probe* to = &result[size_t((q0 + q) * count)];
        for (const Ranked& r : selection.select(keys, size_t(count)))
          *to++ = {r.cell, dots[r.cell]};
      }
    }
  });
  return result;
}

}  // namespace tessera::lattice
