#include "tessera/lattice/lists.h"

#include <cmath>

#include "tessera/base/error.h"
#include "tessera/base/half.h"
#include "tessera/base/thread_pool.h"

namespace tessera::lattice {

namespace {

std::span<const float> row(std::span<const float> rows, size_t i, size_t dim) {
  return rows.empty() ? rows : rows.subspan(i * dim, dim);
}

}  // namespace

int64_t SearchIndex::count(int32_t cell) const {
  int64_t result = 0;
  for (const ListView& view : lists(cell)) result += view.count;
  return result;
}

MemoryLists::MemoryLists(const Coder& coder, Metric metric, std::span<const float> anchors,
                         std::span<const float> points, std::span<const int32_t> cells,
                         std::span<const int64_t> ids, std::span<const float> diagonals)
    : coder_(coder), metric_(metric), anchors_(anchors), diagonals_(diagonals) {
  const size_t dim = size_t(coder.spec().dim), n = cells.size(), k = anchors.size() / dim;
  TESSERA_ASSERT(points.size() == n * dim && (ids.empty() || ids.size() == n));
  first_id_.assign(k + 1, 0);
  for (const int32_t cell : cells) ++first_id_[size_t(cell) + 1];
  for (size_t c = 0; c < k; ++c) first_id_[c + 1] += first_id_[c];
  std::vector<int64_t> next(first_id_.begin(), first_id_.end() - 1), rows(n);
  for (size_t i = 0; i < n; ++i) rows[size_t(next[size_t(cells[i])]++)] = int64_t(i);

  const int64_t lines = coder.shape().block_bytes / int64_t(sizeof(Line));
  std::vector<int64_t> first_line(k + 1, 0);
  for (size_t c = 0; c < k; ++c) {
    first_line[c + 1] = first_line[c] + block_count(first_id_[c + 1] - first_id_[c]) * lines;
  }
  lines_.resize(size_t(first_line[k]));
  views_.resize(k);
  thread_pool().parallel_for(int64_t(k), 1, [&](int64_t begin, int64_t end) {
    for (size_t c = size_t(begin); c < size_t(end); ++c) {
      std::byte* blocks = lines_.data() == nullptr ? nullptr : lines_[0].bytes + first_line[c] * 64;
      views_[c] = {first_id_[c + 1] - first_id_[c], blocks};
      const std::vector<float> diagonal = diagonals.empty()
                                              ? std::vector<float>()
                                              : padded_row(coder.spec(), row(diagonals, c, dim));
      for (int64_t p = 0; p < views_[c].count; ++p) {
        coder.encode_rows(row(points, size_t(rows[size_t(first_id_[c] + p)]), dim),
                          row(anchors, c, dim), diagonal, blocks, p);
      }
    }
  });
  if (!ids.empty()) {
    for (int64_t& i : rows) i = ids[size_t(i)];
  }
  ids_ = std::move(rows);
}

SearchIndex MemoryLists::index() const {
  SearchIndex result;
  result.coder = &coder_;
  result.metric = metric_;
  result.anchors = anchors_;
  result.diagonals = diagonals_;
  result.lists = [this](int32_t cell) { return std::span(&views_[size_t(cell)], 1); };
  result.ids = [this](int32_t cell, std::span<int64_t> ids) {
    std::copy_n(ids_.begin() + first_id_[size_t(cell)], ids.size(), ids.begin());
  };
  result.id = [this](int32_t cell, int64_t position) {
    return ids_[size_t(first_id_[size_t(cell)] + position)];
  };
  return result;
}

std::vector<float> train_diagonals(const Coder& coder, std::span<const float> anchors,
                                   std::span<const float> points, std::span<const int32_t> cells) {
  constexpr double kPrior = 64;  // points that everyone's share counts for
  const size_t dim = size_t(coder.spec().dim), k = anchors.size() / dim, n = cells.size();
  std::vector<float> residuals(points.begin(), points.end());
  for (size_t i = 0; i < n; ++i) {
    const float* anchor = &anchors[size_t(cells[i]) * dim];
    for (size_t j = 0; j < dim; ++j) residuals[i * dim + j] -= anchor[j];
  }
  const std::vector<float> turned = coder.transform_rows(residuals);
  std::vector<double> energy(k * dim, 0), everyone(dim, 0);
  std::vector<double> counts(k, 0);
  for (size_t i = 0; i < n; ++i) {
    const float* r = &turned[i * size_t(coder.spec().padded_dim)];
    const size_t c = size_t(cells[i]);
    counts[c] += 1;
    for (size_t j = 0; j < dim; ++j) {
      const double square = double(r[j]) * r[j];
      energy[c * dim + j] += square;
      everyone[j] += square / double(n);
    }
  }
  std::vector<float> result(k * dim, 1.f);
  for (size_t c = 0; c < k; ++c) {
    double mean = 0;
    for (size_t j = 0; j < dim; ++j) {
      energy[c * dim + j] = (energy[c * dim + j] + kPrior * everyone[j]) / (counts[c] + kPrior);
      mean += energy[c * dim + j] / double(dim);
    }
    for (size_t j = 0; j < dim && mean > 0; ++j) {
      // Never zero, however still a dimension is: codes divide by it. Groups of more bits than
      // others have finer steps.
      const float finer =
          gaussian_step(coder.spec().group_bits[j / kGroup]) / gaussian_step(coder.spec().bits);
      result[c * dim + j] =
          f16(finer * float(std::sqrt(std::max(energy[c * dim + j] / mean, 1e-4))));
    }
  }
  return result;
}

}  // namespace tessera::lattice
