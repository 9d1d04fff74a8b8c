#include "tessera/lattice/coarse.h"

#include <algorithm>

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
    std::vector<Ranked> ranked(static_cast<size_t>(cells));
    for (int64_t q0 = begin * kQueries; q0 < std::min(n, end * kQueries); q0 += kQueries) {
      const int64_t rows = std::min(kQueries, n - q0);
      code_kernels().products(padded_dim, &queries[size_t(q0 * padded_dim)], rows, anchors.data(),
                              cells, products.data(), cells);
      for (int64_t q = 0; q < rows; ++q) {
        const float* dots = &products[size_t(q * cells)];
        for (int64_t c = 0; c < cells; ++c) {
          const float key = squares ? anchor_n2[size_t(c)] - 2 * dots[c] : -dots[c];
          ranked[size_t(c)] = {key, int32_t(c)};
        }
        if (count < cells) std::nth_element(ranked.begin(), ranked.begin() + count, ranked.end());
        std::sort(ranked.begin(), ranked.begin() + count);
        for (int32_t i = 0; i < count; ++i) {
          const int32_t cell = ranked[size_t(i)].cell;
          result[size_t((q0 + q) * count + i)] = {cell, dots[cell]};
        }
      }
    }
  });
  return result;
}

}  // namespace tessera::lattice
