#include "tessera/lattice/transform.h"

#include <algorithm>
#include <cmath>

#include "tessera/base/half.h"
#include "tessera/lattice/code_kernels.h"
#include "tessera/lattice/lists.h"
#include "tessera/lattice/recall.h"
#include "tessera/lattice/search.h"
#include "tessera/lattice/symmetric_eigen.h"

namespace tessera::lattice {

namespace {

constexpr double kLeastGain = 1;       // dB
constexpr size_t kMostPoints = 20000;  // that a covariance is taken from

double mean_n2(const Eigen& eigen) {
  double sum = 0;
  for (const double v : eigen.values) sum += std::max(v, 0.0);
  return sum;
}

Eigen principal_axes(const TransformSample& s) {
  const auto dim = size_t(s.dim);
  const size_t all = s.cells.size(), n = std::min(all, kMostPoints), row = (n + 63) / 64 * 64;
  std::vector<float> turned(dim * row, 0.f);  // (dim, n)
  for (size_t i = 0; i < n; ++i) {
    const size_t p = i * all / n, c = size_t(s.cells[p]);
    for (size_t j = 0; j < dim; ++j) {
      turned[j * row + i] = s.points[p * dim + j] - s.anchors[c * dim + j];
    }
  }
  std::vector<float> products(dim * dim);
  code_kernels().products(int32_t(row), turned.data(), int64_t(dim), turned.data(), int64_t(dim),
                          products.data(), int64_t(dim));
  std::vector<double> covariance(dim * dim);
  for (size_t i = 0; i < dim; ++i) {
    for (size_t j = 0; j < dim; ++j) {  // of both halves one: exactly symmetric
      covariance[i * dim + j] =
          double(products[std::max(i, j) * dim + std::min(i, j)]) / double(std::max<size_t>(n, 1));
    }
  }
  return symmetric_eigen(std::move(covariance), s.dim);
}

// One bit at a time to the group that loses most without it.
std::vector<uint8_t> allocate_bits(const Eigen& eigen, int32_t dim, int32_t bits) {
  const size_t groups = (size_t(dim) + kGroup - 1) / kGroup;
  std::vector<uint8_t> result(groups, 0);
  std::vector<double> loss(groups, 0);  // a dimension's, on average
  const auto size = [&](size_t g) { return std::min<int64_t>(kGroup, dim - int64_t(g) * kGroup); };
  for (size_t i = 0; i < size_t(dim); ++i) {
    loss[i / kGroup] += std::max(eigen.values[i], 0.0) / double(size(i / kGroup));
  }
  for (int64_t left = int64_t(bits) * dim; left > 0;) {
    size_t best = groups;
    for (size_t g = 0; g < groups; ++g) {
      if (result[g] == kMostBits || size(g) > left) continue;
      if (best == groups || loss[g] > loss[best]) best = g;
    }
    if (best == groups) break;
    ++result[best];
    loss[best] /= 4;
    left -= size(best);
  }
  return result;
}

CodeSpec spec_of(const Eigen& eigen, int32_t dim, int32_t bits, uint64_t seed) {
  CodeSpec spec = rotation_spec(dim, bits, seed, mean_n2(eigen));
  spec.transform = TransformKind::pca;
  // To f16, which index files keep; a Coder makes them orthonormal again.
  for (const double x : eigen.vectors) spec.basis.push_back(f16(float(x)));
  spec.group_bits = allocate_bits(eigen, dim, bits);
  return spec;
}

double gain_of(const Eigen& eigen) {
  const double floor = 1e-9 * std::max(eigen.values[0], 1e-300);
  double sum = 0, logs = 0;
  for (const double v : eigen.values) {
    sum += std::max(v, floor);
    logs += std::log(std::max(v, floor));
  }
  const auto n = double(eigen.values.size());
  return 10 * std::log10(sum / n) - 10 / std::log(10.0) * logs / n;
}

// nearest: (m, k), the true ones.
double recall_of(const TransformSample& s, const CodeSpec& spec, std::span<const float> diagonals,
                 std::span<const float> nearest, int64_t k) {
  const Coder coder(spec);
  const MemoryLists lists(coder, s.metric, s.anchors, s.points, s.cells, {}, diagonals);
  const SearchIndex index = lists.index();
  const auto original = [&](int64_t id, std::span<float> x) {
    std::copy_n(&s.points[size_t(id) * size_t(s.dim)], s.dim, x.begin());
  };
  return search_recall(Searcher(index), index.cells(), s.queries, nearest, k, original);
}

// Bits a dimension that the bytes of axes and diagonals, f16 both, come to.
double bits_of_axes(const TransformSample& s) {
  if (s.rows == 0) return 0;
  const double numbers = double(s.dim) * s.dim + double(s.anchors.size());
  return numbers * 16 / double(s.rows) / s.dim;
}

bool enough(const TransformSample& s) { return s.cells.size() >= size_t(s.dim); }

}  // namespace

CodeSpec pca_spec(const TransformSample& sample, int32_t bits, uint64_t seed) {
  const Eigen eigen = principal_axes(sample);
  if (!enough(sample) || bits == 0) return rotation_spec(sample.dim, bits, seed, mean_n2(eigen));
  return spec_of(eigen, sample.dim, bits, seed);
}

double coding_gain(const TransformSample& sample) { return gain_of(principal_axes(sample)); }

TransformChoice choose_transform(const TransformSample& sample, int32_t bits, uint64_t seed) {
  const Eigen eigen = principal_axes(sample);
  TransformChoice choice;
  choice.spec = rotation_spec(sample.dim, bits, seed, mean_n2(eigen));
  choice.coding_gain = gain_of(eigen);
  if (bits == 0 || !enough(sample) || sample.queries.empty() || choice.coding_gain < kLeastGain) {
    return choice;
  }
  CodeSpec pca = spec_of(eigen, sample.dim, bits, seed);
  std::vector<float> diagonals =
      train_diagonals(Coder(pca), sample.anchors, sample.points, sample.cells);
  const int64_t k = std::min<int64_t>(10, int64_t(sample.cells.size()));
  const std::vector<float> nearest =
      true_nearest(sample.metric, sample.dim, sample.points, sample.queries, k);
  choice.rotation_recall = recall_of(sample, choice.spec, {}, nearest, k);
  choice.pca_recall = recall_of(sample, pca, diagonals, nearest, k);
  const double missed = (1 - choice.rotation_recall) * std::exp2(-bits_of_axes(sample));
  const double found = double(sample.queries.size()) / sample.dim * double(k);
  const double error = std::sqrt(missed * (1 - missed) / found);
  if (1 - choice.pca_recall < missed - error) {
    choice.spec = std::move(pca);
    choice.diagonals = std::move(diagonals);
  }
  return choice;
}

}  // namespace tessera::lattice
