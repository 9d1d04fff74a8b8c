#include "lattice_data.h"

#include <cmath>
#include <filesystem>

#include "tessera/base/philox.h"
#include "tessera/io/vector_file.h"

namespace tessera::lattice {

namespace {

// Box and Muller's.
float normal(uint64_t seed, uint64_t index) {
  const auto bits = philox(seed, index);
  const double radius = std::sqrt(-2 * std::log(1 - double(unit_float(bits[0]))));
  return float(radius * std::cos(2 * 3.14159265358979 * double(unit_float(bits[1]))));
}

}  // namespace

std::vector<float> normal_points(int64_t n, int64_t dim, uint64_t seed) {
  std::vector<float> points(static_cast<size_t>(n * dim));
  for (size_t i = 0; i < points.size(); ++i) points[i] = normal(seed, i);
  return points;
}

std::vector<float> mixture(int64_t n, int64_t dim, int64_t clusters, float spread, uint64_t seed) {
  const std::vector<float> centres = normal_points(clusters, dim, seed + 1);
  std::vector<float> points = normal_points(n, dim, seed);
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t p = 0; p < dim; ++p) {
      points[size_t(i * dim + p)] += spread * centres[size_t(i % clusters * dim + p)];
    }
  }
  return points;
}

std::optional<std::vector<float>> shared_vectors(std::string_view file) {
  const std::filesystem::path path =
      std::filesystem::path(TESSERA_TEST_DIR) / "../../../shared/data" / file;
  if (!std::filesystem::exists(path)) return std::nullopt;
  const VectorFile vectors = VectorFile::open(path);
  std::vector<float> rows(static_cast<size_t>(vectors.rows() * vectors.dim()));
  vectors.read(0, vectors.rows(), rows.data());
  return rows;
}

}  // namespace tessera::lattice
