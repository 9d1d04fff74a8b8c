// Plain loops over rows, as one would write them first: T is float for what is timed, double for
// the reference. Matrices are row-major (rows, columns).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

namespace tessera::bench::plain {

template <class T>
void softmax(int64_t rows, int64_t columns, const float* x, T* y) {
  for (int64_t r = 0; r < rows; ++r, x += columns, y += columns) {
    const T greatest = *std::max_element(x, x + columns);
    T sum = 0;
    for (int64_t c = 0; c < columns; ++c) sum += y[c] = std::exp(T(x[c]) - greatest);
    for (int64_t c = 0; c < columns; ++c) y[c] /= sum;
  }
}

// dx = y (g - Σ y g)
template <class T>
void softmax_backward(int64_t rows, int64_t columns, const T* y, const float* g, T* dx) {
  for (int64_t r = 0; r < rows; ++r, y += columns, g += columns, dx += columns) {
    T dot = 0;
    for (int64_t c = 0; c < columns; ++c) dot += y[c] * g[c];
    for (int64_t c = 0; c < columns; ++c) dx[c] = y[c] * (g[c] - dot);
  }
}

template <class T>
struct Moments {
  T mean, rstd;
};

template <class T>
Moments<T> moments(int64_t columns, const float* x) {
  T sum = 0, squares = 0;
  for (int64_t c = 0; c < columns; ++c) sum += x[c];
  const T mean = sum / T(columns);
  for (int64_t c = 0; c < columns; ++c) squares += (x[c] - mean) * (x[c] - mean);
  return {mean, 1 / std::sqrt(squares / T(columns) + T(1e-5))};
}

template <class T>
void layer_norm(int64_t rows, int64_t columns, const float* x, const float* gamma,
                const float* beta, T* y) {
  for (int64_t r = 0; r < rows; ++r, x += columns, y += columns) {
    const Moments<T> m = moments<T>(columns, x);
    for (int64_t c = 0; c < columns; ++c) y[c] = (x[c] - m.mean) * m.rstd * gamma[c] + beta[c];
  }
}

// Writes dx (rows, columns), dgamma and dbeta (columns).
template <class T>
void layer_norm_backward(int64_t rows, int64_t columns, const float* x, const float* gamma,
                         const float* g, T* dx, T* dgamma, T* dbeta) {
  std::fill(dgamma, dgamma + columns, T(0));
  std::fill(dbeta, dbeta + columns, T(0));
  for (int64_t r = 0; r < rows; ++r, x += columns, g += columns, dx += columns) {
    const Moments<T> m = moments<T>(columns, x);
    T sum = 0, dot = 0;
    for (int64_t c = 0; c < columns; ++c) {
      const T normal = (x[c] - m.mean) * m.rstd, scaled = T(g[c]) * gamma[c];
      dgamma[c] += g[c] * normal;
      dbeta[c] += g[c];
      sum += scaled;
      dot += scaled * normal;
    }
    for (int64_t c = 0; c < columns; ++c) {
      const T normal = (x[c] - m.mean) * m.rstd;
      dx[c] = m.rstd * (T(g[c]) * gamma[c] - sum / T(columns) - normal * dot / T(columns));
    }
  }
}

template <class T>
void sum_rows(int64_t rows, int64_t columns, const float* x, T* sums) {
  for (int64_t r = 0; r < rows; ++r, x += columns) {
    T sum = 0;
    for (int64_t c = 0; c < columns; ++c) sum += x[c];
    sums[r] = sum;
  }
}

template <class T>
void sum_columns(int64_t rows, int64_t columns, const float* x, T* sums) {
  std::fill(sums, sums + columns, T(0));
  for (int64_t r = 0; r < rows; ++r, x += columns) {
    for (int64_t c = 0; c < columns; ++c) sums[c] += x[c];
  }
}

// Mean over rows of -log softmax(x)[target], and its gradient.
template <class T>
void cross_entropy(int64_t rows, int64_t columns, const float* x, const float* targets, T* loss,
                   T* dx) {
  T total = 0;
  for (int64_t r = 0; r < rows; ++r, x += columns, dx += columns) {
    const T greatest = *std::max_element(x, x + columns);
    T sum = 0;
    for (int64_t c = 0; c < columns; ++c) sum += dx[c] = std::exp(T(x[c]) - greatest);
    const int64_t target = int64_t(targets[r]);
    total += std::log(sum) + greatest - x[target];
    for (int64_t c = 0; c < columns; ++c) dx[c] /= sum * T(rows);
    dx[target] -= T(1) / T(rows);
  }
  *loss = total / T(rows);
}

// d (count, width): the sum of the rows of g at each index.
template <class T>
void scatter_rows(int64_t count, int64_t width, int64_t n, const float* index, const float* g,
                  T* d) {
  std::fill(d, d + count * width, T(0));
  for (int64_t i = 0; i < n; ++i, g += width) {
    T* const row = d + int64_t(index[i]) * width;
    for (int64_t c = 0; c < width; ++c) row[c] += g[c];
  }
}

// The first k of each row in order, rising or falling; equal elements keep their order.
template <class T>
void order(int64_t rows, int64_t columns, int64_t k, bool falling, const float* x, T* values,
           T* indices) {
  std::vector<int64_t> places(static_cast<size_t>(columns));
  for (int64_t r = 0; r < rows; ++r, x += columns, values += k, indices += k) {
    std::iota(places.begin(), places.end(), 0);
    std::partial_sort(places.begin(), places.begin() + k, places.end(), [&](int64_t a, int64_t b) {
      if (x[a] != x[b]) return falling ? x[a] > x[b] : x[a] < x[b];
      return a < b;
    });
    for (int64_t i = 0; i < k; ++i) {
      values[i] = T(x[places[size_t(i)]]);
      indices[i] = T(places[size_t(i)]);
    }
  }
}

}  // namespace tessera::bench::plain
