// Rows of the named kernels. Included by simd/loops.cpp.
//
// A row is walked several times: its first walk while the results of the row before are written,
// so that memory and arithmetic are both busy.

// The numerators, written to y. kAhead: what lies n further is fetched meanwhile, the row after
// this one.
#if defined(__AVX512F__)
template <bool kAhead>
struct Numerators {
  const float* x;
  int64_t n;
  float from;
  float* y;
  TESSERA_INLINE float one(int64_t i) const { return y[i] = exp_below(x[i] - from); }
  TESSERA_INLINE V<float> wide(int64_t i) const {
    if (kAhead) __builtin_prefetch(x + n + i, 0, 3);
    const __m512 value = exp_below(_mm512_sub_ps(_mm512_loadu_ps(x + i), _mm512_set1_ps(from)));
    _mm512_storeu_ps(y + i, value);
    return V<float>(value);
  }
};

template <bool kAhead>
TESSERA_INLINE float sum_numerators(int64_t n, float* y, const float* x, float from) {
  return fold_source<Sum, float>(Numerators<kAhead>{x, n, from, y}, n);
}
#endif

template <bool kAhead, class T>
TESSERA_INLINE T sum_numerators(int64_t n, T* y, const T* x, T from) {
#if defined(__clang__)
#pragma clang loop vectorize(assume_safety)
#else
#pragma GCC ivdep
#endif
  for (int64_t i = 0; i < n; ++i) y[i] = exp_below(x[i] - from);
  return fold_run<Sum, T>(y, n);
}

// Without regard for NaN, which ends up in the sum.
struct Greater : Max {
  template <class X>
  TESSERA_INLINE static X apply(X a, X b) {
    return by_halves([](auto x, auto y) { return x > y ? x : y; }, a, b);
  }
};

// Results past the caches, where kStreams; else where they lie.
template <bool kStreams, class T>
TESSERA_INLINE void put_wide(T* p, V<T> v) {
  kStreams ? stream_wide(p, v) : store_wide(p, v);
}

// The numerators become results; the elements are those of the next row. They are read before
// anything is written: rows that lie whole pages apart look to the processor as if they overlapped.
template <class T, bool kStreams>
struct Quotients {
  const T* numerators;
  T* y;
  T scale;
  const T* next;
  TESSERA_INLINE T one(int64_t i) const {
    const T soon = next[i];
    y[i] = numerators[i] * scale;
    return soon;
  }
  TESSERA_INLINE V<T> wide(int64_t i) const {
    const V<T> soon = load_wide(next + i);
    put_wide<kStreams>(y + i, load_wide(numerators + i) * splat(scale));
    return soon;
  }
};

template <class T, bool kStreams>
TESSERA_INLINE void softmax_rows(int64_t rows, int64_t n, T* y, const T* x, T* room) {
  T greatest = fold_run<Greater, T>(x, n);
  for (int64_t row = 0; row < rows; ++row, x += n, y += n) {
    T* numerators = kStreams ? room : y;
    const T scale = 1 / sum_numerators<kStreams>(n, numerators, x, greatest);
    const T* next = row + 1 < rows ? x + n : x;
    greatest = fold_source<Greater, T>(Quotients<T, kStreams>{numerators, y, scale, next}, n);
  }
}

template <class T>
void softmax_loop(int64_t rows, int64_t n, void* y, const void* x, void* room) {
  T* yp = static_cast<T*>(y);
  const T* xp = static_cast<const T*>(x);
  room == nullptr ? softmax_rows<T, false>(rows, n, yp, xp, nullptr)
                  : softmax_rows<T, true>(rows, n, yp, xp, static_cast<T*>(room));
}

template <class T>
struct SquaredDistances {
  const T* x;
  T from;
  TESSERA_INLINE T one(int64_t i) const { return (x[i] - from) * (x[i] - from); }
  TESSERA_INLINE V<T> wide(int64_t i) const {
    const V<T> d = load_wide(x + i) - splat(from);
    return d * d;
  }
};

// The results of a row; the elements are those of the next one.
template <class T, bool kStreams>
struct Normalized {
  T* y;
  const T *x, *gamma, *beta;
  T mean, rstd;
  const T* next;
  TESSERA_INLINE T one(int64_t i) const {
    const T soon = next[i];
    y[i] = (x[i] - mean) * rstd * gamma[i] + beta[i];
    return soon;
  }
  TESSERA_INLINE V<T> wide(int64_t i) const {
    const V<T> soon = load_wide(next + i);
    const V<T> normal = (load_wide(x + i) - splat(mean)) * splat(rstd);
    put_wide<kStreams>(y + i, normal * load_wide(gamma + i) + load_wide(beta + i));
    return soon;
  }
};

template <class T, bool kStreams>
TESSERA_INLINE void layer_norm_rows(int64_t rows, int64_t n, void* y, void* means, void* rstds,
                                    const void* x, const void* gamma, const void* beta,
                                    double epsilon) {
  T* yp = static_cast<T*>(y);
  const T* xp = static_cast<const T*>(x);
  const T* gp = static_cast<const T*>(gamma);
  const T* bp = static_cast<const T*>(beta);
  T sum = fold_run<Sum, T>(xp, n);
  for (int64_t row = 0; row < rows; ++row, xp += n, yp += n) {
    const T mean = sum / T(n);
    const T variance = fold_source<Sum, T>(SquaredDistances<T>{xp, mean}, n) / T(n);
    const T rstd = 1 / sqrt(variance + T(epsilon));
    const T* next = row + 1 < rows ? xp + n : xp;
    sum = fold_source<Sum, T>(Normalized<T, kStreams>{yp, xp, gp, bp, mean, rstd, next}, n);
    if (means != nullptr) static_cast<T*>(means)[row] = mean;
    if (rstds != nullptr) static_cast<T*>(rstds)[row] = rstd;
  }
}

template <class T>
void layer_norm_loop(int64_t rows, int64_t n, void* y, void* means, void* rstds, const void* x,
                     const void* gamma, const void* beta, double epsilon, bool streams) {
  streams ? layer_norm_rows<T, true>(rows, n, y, means, rstds, x, gamma, beta, epsilon)
          : layer_norm_rows<T, false>(rows, n, y, means, rstds, x, gamma, beta, epsilon);
}

// A row of g, x and gamma, seen as the two sums and the result of the gradient need it. Wide on
// purpose, the last loop too: compilers find too many arrays in it that might overlap.
template <class T>
struct NormGradient {
  const T *g, *x, *gamma;
  T mean, rstd;

  TESSERA_INLINE T scaled(int64_t i) const { return g[i] * gamma[i]; }
  TESSERA_INLINE T normal(int64_t i) const { return (x[i] - mean) * rstd; }
  TESSERA_INLINE V<T> scaled_wide(int64_t i) const {
    return load_wide(g + i) * load_wide(gamma + i);
  }
  TESSERA_INLINE V<T> normal_wide(int64_t i) const {
    return (load_wide(x + i) - splat(mean)) * splat(rstd);
  }
};

template <class T>
struct Sums {
  T one, x;  // of g · gamma, and of that times the normalised x
};

template <class T, bool kSoon>
TESSERA_INLINE Sums<T> sum_gradient(const NormGradient<T>& row, int64_t n, const T* soon) {
  constexpr int64_t kLanes = Wide<T>::kLanes, kAccumulators = 4;
  V<T> one[kAccumulators] = {}, x[kAccumulators] = {};
  int64_t i = 0;
  auto add = [&](int64_t k, int64_t at) {
    if (kSoon) __builtin_prefetch(soon + at, 1, 2);
    const V<T> scaled = row.scaled_wide(at);
    one[k] = one[k] + scaled;
    x[k] = x[k] + scaled * row.normal_wide(at);
  };
  for (; i + kAccumulators * kLanes <= n; i += kAccumulators * kLanes) {
    for (int64_t k = 0; k < kAccumulators; ++k) add(k, i + k * kLanes);
  }
  for (; i + kLanes <= n; i += kLanes) add(0, i);
  Sums<T> rest{0, 0};
  for (; i < n; ++i) {
    rest.one += row.scaled(i);
    rest.x += row.scaled(i) * row.normal(i);
  }
  return {fold_lanes<Sum, T>((one[0] + one[1]) + (one[2] + one[3])) + rest.one,
          fold_lanes<Sum, T>((x[0] + x[1]) + (x[2] + x[3])) + rest.x};
}

template <class T, bool kStreams>
TESSERA_INLINE void norm_gradient(int64_t n, void* dx, void* dgamma, void* dbeta, const void* g,
                                  const void* x, const void* gamma, const void* mean,
                                  const void* rstd) {
  T* dxp = static_cast<T*>(dx);
  T* dgp = static_cast<T*>(dgamma);
  T* dbp = static_cast<T*>(dbeta);
  const NormGradient<T> row{static_cast<const T*>(g), static_cast<const T*>(x),
                            static_cast<const T*>(gamma), *static_cast<const T*>(mean),
                            *static_cast<const T*>(rstd)};
  const Sums<T> sums = sum_gradient<T, !kStreams>(row, n, dxp);
  const T along_one = sums.one / T(n), along_x = sums.x / T(n);
  int64_t i = 0;
  for (; i + Wide<T>::kLanes <= n; i += Wide<T>::kLanes) {
    __builtin_prefetch(row.g + n + i, 0, 2);
    __builtin_prefetch(row.x + n + i, 0, 2);
    const V<T> normal = row.normal_wide(i), gi = load_wide(row.g + i);
    store_wide(dgp + i, load_wide(dgp + i) + gi * normal);
    store_wide(dbp + i, load_wide(dbp + i) + gi);
    const V<T> result =
        splat(row.rstd) * (row.scaled_wide(i) - splat(along_one) - normal * splat(along_x));
    put_wide<kStreams>(dxp + i, result);
  }
  for (; i < n; ++i) {
    const T normal = row.normal(i);
    dgp[i] += row.g[i] * normal;
    dbp[i] += row.g[i];
    dxp[i] = row.rstd * (row.scaled(i) - along_one - normal * along_x);
  }
}

template <class T>
void layer_norm_backward_row(int64_t n, void* dx, void* dgamma, void* dbeta, const void* g,
                             const void* x, const void* gamma, const void* mean, const void* rstd,
                             bool streams) {
  streams ? norm_gradient<T, true>(n, dx, dgamma, dbeta, g, x, gamma, mean, rstd)
          : norm_gradient<T, false>(n, dx, dgamma, dbeta, g, x, gamma, mean, rstd);
}

constexpr void fill_rows(LoopTable& table) {
  table.rows_f32 = {softmax_loop<float>, layer_norm_loop<float>, layer_norm_backward_row<float>};
  table.rows_f64 = {softmax_loop<double>, layer_norm_loop<double>, layer_norm_backward_row<double>};
}
