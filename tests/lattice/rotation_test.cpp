#include "tessera/lattice/rotation.h"

#include "code_fixture.h"

namespace tessera::lattice {
namespace {

int32_t padded(int32_t dim) { return (dim + 63) / 64 * 64; }

// Images of the unit vectors, (dim, padded).
std::vector<float> matrix(int32_t dim, uint64_t seed) {
  const Rotation rotation(dim, padded(dim), seed);
  std::vector<float> rows(size_t(dim) * size_t(padded(dim)), 0.f);
  for (int32_t i = 0; i < dim; ++i) {
    float* row = &rows[size_t(i * padded(dim))];
    row[i] = 1;
    rotation.apply(row);
  }
  return rows;
}

TEST(Rotation, IsOrthonormalForAnyDimension) {
  for (const int32_t dim : {1, 2, 3, 5, 8, 15, 16, 17, 31, 64, 96, 100, 127, 128, 129, 200, 255}) {
    const std::vector<float> rows = matrix(dim, 3);
    const auto p = size_t(padded(dim));
    for (size_t i = 0; i < size_t(dim); ++i) {
      for (size_t j = 0; j <= i; ++j) {
        double dot = 0;
        for (size_t k = 0; k < p; ++k) dot += double(rows[i * p + k]) * rows[j * p + k];
        ASSERT_NEAR(dot, i == j ? 1 : 0, 2e-6) << "dim " << dim << " rows " << i << " " << j;
      }
      for (size_t k = size_t(dim); k < p; ++k) ASSERT_EQ(rows[i * p + k], 0.f);
    }
  }
}

TEST(Rotation, SpreadsOneDimensionOverAll) {
  for (const int32_t dim : {100, 128, 255, 784}) {
    const Rotation rotation(dim, padded(dim), 5);
    for (const int32_t i : {0, dim / 2, dim - 1}) {
      std::vector<float> x(size_t(padded(dim)), 0.f);
      x[size_t(i)] = 1;
      rotation.apply(x.data());
      float largest = 0;
      for (const float v : x) largest = std::max(largest, std::fabs(v));
      EXPECT_LT(largest * std::sqrt(float(dim)), 5) << "dim " << dim << " unit vector " << i;
    }
  }
}

TEST(Rotation, InverseUndoesIt) {
  for (const int32_t dim : {1, 7, 64, 100, 255}) {
    const Rotation rotation(dim, padded(dim), 9);
    std::vector<float> x = gaussians(1, dim);
    x.resize(size_t(padded(dim)), 0.f);
    std::vector<float> y = x;
    rotation.apply(y.data());
    rotation.apply_inverse(y.data());
    for (size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(x[i], y[i], 3e-6) << "dim " << dim;
  }
}

TEST(Rotation, DependsOnTheSeed) {
  EXPECT_EQ(matrix(40, 1), matrix(40, 1));
  EXPECT_NE(matrix(40, 1), matrix(40, 2));
}

TEST(Rotation, EqualBitsOnEveryInstructionSet) {
  for (const int32_t dim : {9, 100, 128, 784}) {
    std::vector<float> expected;
    with_each_kernels([&] {
      std::vector<float> x = gaussians(4, padded(dim));
      std::fill(x.begin() + dim, x.end(), 0.f);
      Rotation(dim, padded(dim), 5).apply(x.data());
      if (expected.empty()) expected = x;
      EXPECT_EQ(x, expected) << "dim " << dim;
    });
  }
}

}  // namespace
}  // namespace tessera::lattice
