// Rows of the named kernels. Included by simd/loops.cpp.
//
// Each row takes part in three walks, and each walk has three rows: the next one is met for the
// first time while this one is computed and the one before becomes results. So memory and
// arithmetic are both busy, and what folds a row's lanes is waited for once. What a walk reads at a
// place comes before what it writes there: rows that lie whole pages apart look to the processor as
// if they overlapped.

template <class H>
TESSERA_INLINE Pair<H> fused(Pair<H> a, Pair<H> b, Pair<H> c) {
  return {fused(a.low, b.low, c.low), fused(a.high, b.high, c.high)};
}
template <class H>
TESSERA_INLINE Pair<H> at_least(float least, Pair<H> x) {
  return {at_least(least, x.low), at_least(least, x.high)};
}
template <int32_t kUp, class H>
TESSERA_INLINE Pair<H> power_of(Pair<H> shifted) {
  return {power_of<kUp>(shifted.low), power_of<kUp>(shifted.high)};
}

// x <= 0 become numerators of a softmax, e^x times a power of two: so far up, none that counts
// leaves the normal range, and those of the least x vanish beside the sum.
template <int K, class X>
TESSERA_INLINE void to_numerators(X (&x)[K]) {
  for (int k = 0; k < K; ++k) x[k] = at_least(-110.f, x[k]);
  exp_up<64>(x);
}
TESSERA_INLINE float numerator_of(float x) {
  float one[1] = {x};
  to_numerators(one);
  return one[0];
}
TESSERA_INLINE double numerator_of(double x) { return exp(x); }
template <int K>
TESSERA_INLINE void to_numerators(V<double> (&x)[K]) {
  double lanes[Wide<double>::kLanes];
  for (V<double>& wide : x) {
    store_wide(lanes, wide);
    for (double& lane : lanes) lane = numerator_of(lane);
    wide = load_wide(lanes);
  }
}

// Lines a few thousand bytes ahead of a walk are asked for: what is to be read from as far as
// memory, what is to be written from other caches. Beyond the last row they are nobody's, and
// ignored.
template <class T>
TESSERA_INLINE void will_read(const T* p) {
  __builtin_prefetch(reinterpret_cast<const char*>(p) + 8192, 0, 3);
}
template <class T>
TESSERA_INLINE void will_write(const T* p) {
  __builtin_prefetch(reinterpret_cast<const char*>(p) + 4096, 1, 3);
}

// Along a row: wide(Count<K>, i, k) is called for K wide values side by side, from element i and
// accumulator k on, then one(i) for single ones.
template <int kTogether, class T, class WideStep, class OneStep>
TESSERA_INLINE void walk(int64_t n, WideStep wide, OneStep one) {
  constexpr int64_t kLanes = Wide<T>::kLanes;
  int64_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    for (int k = 0; k < 4; k += kTogether) wide(Count<kTogether>{}, i + k * kLanes, k);
  }
  for (; i + kLanes <= n; i += kLanes) wide(Count<1>{}, i, 0);
  for (; i < n; ++i) one(i);
}

template <class Op, class T>
struct Accumulators {
  V<T> wide[4];
  T rest = Op::template identity<T>();

  TESSERA_INLINE Accumulators() {
    for (V<T>& each : wide) each = splat(rest);
  }
  TESSERA_INLINE void take(int k, V<T> value) { wide[k] = Op::apply(wide[k], value); }
  TESSERA_INLINE void take(T value) { rest = Op::apply(rest, value); }
  TESSERA_INLINE T total() const {
    const V<T> all = Op::apply(Op::apply(wide[0], wide[1]), Op::apply(wide[2], wide[3]));
    return Op::apply(fold_lanes<Op, T>(all), rest);
  }
};

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

// Numerators that become results.
template <class T>
struct Quotients {
  const T* numerators;
  T scale;
  T* y;

  template <bool kStreams>
  TESSERA_INLINE void wide(int64_t i) const {
    put_wide<kStreams>(y + i, load_wide(numerators + i) * splat(scale));
  }
  TESSERA_INLINE void one(int64_t i) const { y[i] = numerators[i] * scale; }
};

template <class T>
struct SoftmaxWalk {
  T sum;       // of the numerators
  T greatest;  // of the next row
};

// Computes and stores the numerators of x. kBefore: there is a row before.
template <bool kBefore, bool kStreams, class T>
TESSERA_INLINE SoftmaxWalk<T> walk_softmax(int64_t n, const T* x, T greatest, T* numerators,
                                           Quotients<T> before, const T* next) {
  constexpr int64_t kLanes = Wide<T>::kLanes;
  constexpr int kTogether = kRegister == 64 ? 4 : 1;
  Accumulators<Sum, T> sum;
  Accumulators<Greater, T> most;
  const auto wide = [&]<int K>(Count<K>, int64_t first, int k) {
    V<T> values[K];
    for (int j = 0; j < K; ++j) values[j] = load_wide(x + first + j * kLanes) - splat(greatest);
    for (int j = 0; j < K; ++j) {
      const int64_t i = first + j * kLanes;
      will_read(next + i);
      if (!kStreams) will_write(numerators + i);
      most.take(k + j, load_wide(next + i));
      if (kBefore) before.template wide<kStreams>(i);
    }
    to_numerators(values);
    for (int j = 0; j < K; ++j) {
      store_wide(numerators + first + j * kLanes, values[j]);
      sum.take(k + j, values[j]);
    }
  };
  const auto one = [&](int64_t i) {
    const T numerator = numerator_of(x[i] - greatest);
    most.take(next[i]);
    if (kBefore) before.one(i);
    sum.take(numerators[i] = numerator);
  };
  walk<kTogether, T>(n, wide, one);
  return {sum.total(), most.total()};
}

// room: two rows of numerators where results are streamed; else these lie where the results will.
template <class T, bool kStreams>
TESSERA_INLINE void softmax_rows(int64_t rows, int64_t n, T* y, const T* x, T* room) {
  if (rows == 0) return;
  T greatest = fold_run<Greater, T>(x, n);
  Quotients<T> before{};
  for (int64_t row = 0; row < rows; ++row, x += n, y += n) {
    T* numerators = kStreams ? room + row % 2 * n : y;
    const T* next = row + 1 < rows ? x + n : x;
    const SoftmaxWalk<T> found =
        row == 0 ? walk_softmax<false, kStreams>(n, x, greatest, numerators, before, next)
                 : walk_softmax<true, kStreams>(n, x, greatest, numerators, before, next);
    greatest = found.greatest;
    before = {numerators, 1 / found.sum, y};
  }
  walk<1, T>(
      n, [&](Count<1>, int64_t i, int) { before.template wide<kStreams>(i); },
      [&](int64_t i) { before.one(i); });
}

template <class T>
void softmax_loop(int64_t rows, int64_t n, void* y, const void* x, void* room) {
  T* yp = static_cast<T*>(y);
  const T* xp = static_cast<const T*>(x);
  room == nullptr ? softmax_rows<T, false>(rows, n, yp, xp, nullptr)
                  : softmax_rows<T, true>(rows, n, yp, xp, static_cast<T*>(room));
}

// Of a row x, the results.
template <class T>
struct Normalized {
  const T *x, *gamma, *beta;
  T mean, rstd;
  T* y;

  template <bool kStreams>
  TESSERA_INLINE void wide(int64_t i) const {
    const V<T> normal = (load_wide(x + i) - splat(mean)) * splat(rstd);
    put_wide<kStreams>(y + i, normal * load_wide(gamma + i) + load_wide(beta + i));
  }
  TESSERA_INLINE void one(int64_t i) const { y[i] = (x[i] - mean) * rstd * gamma[i] + beta[i]; }
};

template <class T>
struct NormWalk {
  T squares;  // of the distances from the mean, their sum
  T sum;      // of the next row
};

// kBefore: there is a row before.
template <bool kBefore, bool kStreams, class T>
TESSERA_INLINE NormWalk<T> walk_norm(int64_t n, const T* x, T mean, Normalized<T> before,
                                     const T* next, const T* y) {
  Accumulators<Sum, T> squares, sum;
  const auto wide = [&](Count<1>, int64_t i, int k) {
    will_read(next + i);
    if (!kStreams) will_write(y + i);
    const V<T> distance = load_wide(x + i) - splat(mean);
    sum.take(k, load_wide(next + i));
    if (kBefore) before.template wide<kStreams>(i);
    squares.take(k, distance * distance);
  };
  const auto one = [&](int64_t i) {
    const T distance = x[i] - mean;
    sum.take(next[i]);
    if (kBefore) before.one(i);
    squares.take(distance * distance);
  };
  walk<1, T>(n, wide, one);
  return {squares.total(), sum.total()};
}

template <class T, bool kStreams>
void layer_norm_rows(int64_t rows, int64_t n, T* y, T* means, T* rstds, const T* x, const T* gamma,
                     const T* beta, double epsilon) {
  if (rows == 0) return;
  T mean = fold_run<Sum, T>(x, n) / T(n);
  Normalized<T> before{};
  for (int64_t row = 0; row < rows; ++row, x += n, y += n) {
    const T* next = row + 1 < rows ? x + n : x;
    const NormWalk<T> found = row == 0 ? walk_norm<false, kStreams>(n, x, mean, before, next, y)
                                       : walk_norm<true, kStreams>(n, x, mean, before, next, y);
    const T rstd = 1 / sqrt(found.squares / T(n) + T(epsilon));
    if (means != nullptr) means[row] = mean;
    if (rstds != nullptr) rstds[row] = rstd;
    before = {x, gamma, beta, mean, rstd, y};
    mean = found.sum / T(n);
  }
  walk<1, T>(
      n, [&](Count<1>, int64_t i, int) { before.template wide<kStreams>(i); },
      [&](int64_t i) { before.one(i); });
}

template <class T>
void layer_norm_loop(int64_t rows, int64_t n, void* y, void* means, void* rstds, const void* x,
                     const void* gamma, const void* beta, double epsilon, bool streams) {
  const auto run = streams ? layer_norm_rows<T, true> : layer_norm_rows<T, false>;
  run(rows, n, static_cast<T*>(y), static_cast<T*>(means), static_cast<T*>(rstds),
      static_cast<const T*>(x), static_cast<const T*>(gamma), static_cast<const T*>(beta), epsilon);
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
