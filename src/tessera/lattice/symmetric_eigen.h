// Eigenvalues and eigenvectors of a symmetric matrix.
#pragma once

#include <cstdint>
#include <vector>

namespace tessera::lattice {

struct Eigen {
  std::vector<double> values;   // (n), the largest first
  std::vector<double> vectors;  // (n, n), row i belongs to value i, length 1
};

// matrix: (n, n). Householder reflections to a tridiagonal matrix, then QL steps with implicit
// shifts: O(n³), a second for n = 700.
Eigen symmetric_eigen(std::vector<double> matrix, int64_t n);

}  // namespace tessera::lattice
