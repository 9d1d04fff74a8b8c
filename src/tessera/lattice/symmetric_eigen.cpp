#include "tessera/lattice/symmetric_eigen.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "tessera/base/error.h"

namespace tessera::lattice {

namespace {

// a becomes tridiagonal by reflections, which multiply up in q: a_before = qᵀ · a_after · q.
void tridiagonalize(std::vector<double>& a, std::vector<double>& q, size_t n) {
  std::vector<double> v(n), w(n);
  for (size_t k = 0; k + 2 < n; ++k) {
    double length = 0;
    for (size_t i = k + 1; i < n; ++i) length += a[i * n + k] * a[i * n + k];
    length = std::sqrt(length);
    if (length == 0) continue;
    std::fill(v.begin(), v.end(), 0.0);
    for (size_t i = k + 1; i < n; ++i) v[i] = a[i * n + k];
    v[k + 1] += std::copysign(length, v[k + 1]);
    double norm = 0;
    for (size_t i = k + 1; i < n; ++i) norm += v[i] * v[i];
    norm = std::sqrt(norm);
    for (size_t i = k + 1; i < n; ++i) v[i] /= norm;

    // (1 - 2vvᵀ) a (1 - 2vvᵀ) = a - 2vwᵀ - 2wvᵀ with w = av - (vᵀav) v.
    double inner = 0;
    for (size_t i = k; i < n; ++i) {
      w[i] = std::inner_product(&a[i * n + k], &a[i * n] + n, &v[k], 0.0);
      inner += w[i] * v[i];
    }
    for (size_t i = k; i < n; ++i) w[i] -= inner * v[i];
    for (size_t i = k; i < n; ++i) {
      for (size_t j = k; j < n; ++j) a[i * n + j] -= 2 * (v[i] * w[j] + w[i] * v[j]);
    }
    std::fill(w.begin(), w.end(), 0.0);
    for (size_t i = k + 1; i < n; ++i) {
      for (size_t j = 0; j < n; ++j) w[j] += v[i] * q[i * n + j];
    }
    for (size_t i = k + 1; i < n; ++i) {
      for (size_t j = 0; j < n; ++j) q[i * n + j] -= 2 * v[i] * w[j];
    }
  }
}

// One QL sweep over rows [l, m] of the tridiagonal matrix with diagonal d and off-diagonal e
// (e[i] beside d[i] and d[i + 1]); its rotations turn the rows of q.
void sweep(std::vector<double>& d, std::vector<double>& e, std::vector<double>& q, size_t l,
           size_t m) {
  const size_t n = d.size();
  double g = (d[l + 1] - d[l]) / (2 * e[l]);
  g = d[m] - d[l] + e[l] / (g + std::copysign(std::hypot(g, 1.0), g));  // the shift taken off
  double sine = 1, cosine = 1, carried = 0;
  for (size_t i = m; i-- > l;) {
    const double f = sine * e[i], b = cosine * e[i], r = std::hypot(f, g);
    e[i + 1] = r;
    if (r == 0) {
      d[i + 1] -= carried;
      e[m] = 0;
      return;
    }
    sine = f / r;
    cosine = g / r;
    const double rest = d[i + 1] - carried;
    const double turned = (d[i] - rest) * sine + 2 * cosine * b;
    carried = sine * turned;
    d[i + 1] = rest + carried;
    g = cosine * turned - b;
    double *upper = &q[i * n], *lower = &q[(i + 1) * n];
    for (size_t j = 0; j < n; ++j) {
      const double x = lower[j];
      lower[j] = sine * upper[j] + cosine * x;
      upper[j] = cosine * upper[j] - sine * x;
    }
  }
  d[l] -= carried;
  e[l] = g;
  e[m] = 0;
}

}  // namespace

Eigen symmetric_eigen(std::vector<double> a, int64_t size) {
  const auto n = size_t(size);
  TESSERA_ASSERT(n >= 1 && a.size() == n * n);
  std::vector<double> q(n * n, 0), d(n), e(n, 0);
  for (size_t i = 0; i < n; ++i) q[i * n + i] = 1;
  tridiagonalize(a, q, n);
  for (size_t i = 0; i < n; ++i) d[i] = a[i * n + i];
  for (size_t i = 0; i + 1 < n; ++i) e[i] = a[(i + 1) * n + i];
  for (size_t l = 0; l < n; ++l) {
    for (int step = 0;; ++step) {
      size_t m = l;
      for (; m + 1 < n; ++m) {
        const double beside = std::fabs(d[m]) + std::fabs(d[m + 1]);
        if (std::fabs(e[m]) <= std::numeric_limits<double>::epsilon() * beside) break;
      }
      if (m == l) break;
      TESSERA_ASSERT(step < 100);  // two or three are usual
      sweep(d, e, q, l, m);
    }
  }
  std::vector<size_t> order(n);
  std::iota(order.begin(), order.end(), size_t(0));
  std::sort(order.begin(), order.end(),
            [&](size_t x, size_t y) { return d[x] > d[y] || (d[x] == d[y] && x < y); });
  Eigen result;
  for (const size_t i : order) {
    result.values.push_back(d[i]);
    result.vectors.insert(result.vectors.end(), &q[i * n], &q[i * n] + n);
  }
  return result;
}

}  // namespace tessera::lattice
