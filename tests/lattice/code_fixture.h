// What the tests of codes share: seeded data, files of vectors, a few steps of k-means.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <fstream>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tessera/base/philox.h"
#include "tessera/lattice/code_kernels.h"
#include "tessera/lattice/estimate.h"

namespace tessera::lattice {

inline float gaussian(uint64_t seed, uint64_t index) {
  const auto words = philox(seed, index);
  const float radius = std::sqrt(-2 * std::log(unit_float(words[0]) + 0x1p-25f));
  return radius * std::cos(6.2831853f * unit_float(words[1]));
}

inline std::vector<float> gaussians(uint64_t seed, int64_t count, float scale = 1) {
  std::vector<float> result(static_cast<size_t>(count));
  for (size_t i = 0; i < result.size(); ++i) result[i] = scale * gaussian(seed, i);
  return result;
}

// Clusters whose spread falls by dimension, as real descriptors' does.
inline std::vector<float> mixture(uint64_t seed, int64_t n, int64_t dim, int64_t clusters = 16) {
  std::vector<float> result(static_cast<size_t>(n * dim));
  for (int64_t i = 0; i < n; ++i) {
    const int64_t c = philox(seed, uint64_t(i), 1)[0] % clusters;
    for (int64_t j = 0; j < dim; ++j) {
      result[size_t(i * dim + j)] =
          2 * gaussian(77, uint64_t(c * dim + j)) +
          gaussian(seed, uint64_t(i * dim + j)) / std::sqrt(1.f + 0.1f * float(j));
    }
  }
  return result;
}

struct Vectors {
  int64_t count = 0, dim = 0;
  std::vector<float> rows;

  std::span<const float> part(int64_t first, int64_t n) const {
    return std::span(rows).subspan(size_t(first * dim), size_t(n * dim));
  }
};

// ../shared/data of a checkout, where measured data lies.
inline std::optional<Vectors> shared_u8bin(const std::string& name) {
  std::ifstream file(std::string(TESSERA_TEST_DIR) + "/../../../shared/data/" + name,
                     std::ios::binary);
  uint32_t header[2];
  if (!file.read(reinterpret_cast<char*>(header), sizeof header)) return std::nullopt;
  const size_t size = size_t(header[0]) * header[1];
  std::vector<uint8_t> bytes(size);
  file.read(reinterpret_cast<char*>(bytes.data()), std::streamsize(bytes.size()));
  return Vectors{header[0], header[1], std::vector<float>(bytes.begin(), bytes.end())};
}

inline int32_t nearest_row(std::span<const float> rows, std::span<const float> x) {
  size_t best = 0;
  float least = INFINITY;
  for (size_t c = 0; c * x.size() < rows.size(); ++c) {
    const float d = true_distance(Metric::l2, rows.subspan(c * x.size(), x.size()), x);
    if (d < least) {
      least = d;
      best = c;
    }
  }
  return int32_t(best);
}

struct Cells {
  std::vector<float> anchors;
  std::vector<int32_t> of_point;
  double mean_n2 = 0;
};

// Plain Lloyd from the first points.
inline Cells make_cells(std::span<const float> points, int64_t dim, int64_t cells, int steps = 4) {
  const size_t d = size_t(dim), n = points.size() / d, k = size_t(cells);
  Cells result;
  result.anchors.assign(points.begin(), points.begin() + int64_t(k * d));
  result.of_point.resize(n);
  for (int step = 0; step <= steps; ++step) {
    std::vector<double> sums(k * d, 0), counts(k, 0);
    result.mean_n2 = 0;
    for (size_t i = 0; i < n; ++i) {
      const auto x = points.subspan(i * d, d);
      const size_t c = size_t(result.of_point[i] = nearest_row(result.anchors, x));
      result.mean_n2 +=
          true_distance(Metric::l2, std::span(result.anchors).subspan(c * d, d), x) / double(n);
      counts[c] += 1;
      for (size_t j = 0; j < d; ++j) sums[c * d + j] += x[j];
    }
    for (size_t i = 0; i < k * d && step < steps; ++i) {
      if (counts[i / d] > 0) result.anchors[i] = float(sums[i] / counts[i / d]);
    }
  }
  return result;
}

// Runs `test` with every set of kernels this processor has.
template <class Test>
void with_each_kernels(Test test) {
  const CodeKernels& before = code_kernels();
  for (const CodeKernels* kernels : available_code_kernels()) {
    SCOPED_TRACE(kernels->name);
    set_code_kernels(*kernels);
    test();
  }
  set_code_kernels(before);
}

}  // namespace tessera::lattice
