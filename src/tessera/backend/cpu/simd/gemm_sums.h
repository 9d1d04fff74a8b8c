// Tiles of dot products, for operands that are both contiguous along k, and sums of long rows.
// Included by simd/gemm.cpp after gemm_pack.h.

// The sums of neighbouring quarters of a vector's lanes, as one quad.
template <class T>
TESSERA_INLINE Q<T> fold_to_quad(V<T> v) {
  Q<T> quads[kLanes<T> / 4 > 0 ? kLanes<T> / 4 : 1] = {};
  __builtin_memcpy(quads, &v, sizeof v);
#pragma GCC unroll 4
  for (int64_t width = kLanes<T> / 8; width >= 1; width /= 2) {
#pragma GCC unroll 4
    for (int64_t i = 0; i < width; ++i) quads[i] += quads[i + width];
  }
  return quads[0];
}

// The sums of four vectors' lanes.
template <class T>
TESSERA_INLINE Q<T> sum_lanes(const V<T>* v) {
  Q<T> q[4];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) q[i] = fold_to_quad<T>(v[i]);
  transpose_quads<T>(q);
  return (q[0] + q[2]) + (q[1] + q[3]);
}

// R x N sums side by side: each load serves several of them.
template <class T, int R, int N>
TESSERA_INLINE void dot_tile(const GemmTile<T>& t, const T* a, const T* b, T* c) {
  V<T> acc[R][N < 4 ? 4 : N] = {};
  const bool short_lines = t.k <= 256;  // the hardware fetches ahead only within longer ones
  auto step = [&](const auto& load_one, int64_t p) __attribute__((always_inline)) {
    V<T> left[R];
#pragma GCC unroll 4
    for (int i = 0; i < R; ++i) left[i] = load_one(a + i * t.a_step + p);
#pragma GCC unroll 8
    for (int j = 0; j < N; ++j) {
      const T* at = b + j * t.b_step + p;
      if (R == 1 && short_lines) __builtin_prefetch(at + N * t.b_step);
      const V<T> right = load_one(at);
#pragma GCC unroll 4
      for (int i = 0; i < R; ++i) acc[i][j] += left[i] * right;
    }
  };
  int64_t p = 0;
  for (; p + kLanes<T> <= t.k; p += kLanes<T>) {
    step(
        [](const T* at) __attribute__((always_inline)) { return load(at); }, p);
  }
  if (p < t.k) {
    const Part<T> part(t.k - p);
    step(
        [&](const T* at) __attribute__((always_inline)) { return part.load(at); }, p);
  }
  const int64_t c_step = t.c_step;
#pragma GCC unroll 4
  for (int i = 0; i < R; ++i) {
#pragma GCC unroll 2
    for (int j = 0; j < N; j += 4) {
      const Q<T> sums = sum_lanes<T>(acc[i] + j);
      __builtin_memcpy(c + i * c_step + j, &sums, (N < 4 ? N : 4) * sizeof(T));
    }
  }
}

template <class T, int R, int N>
void dot_rows(const GemmTile<T>& t, const T* a, T* c) {
  int64_t j = 0;
  for (; j + N <= t.width; j += N) dot_tile<T, R, N>(t, a, t.b + j * t.b_step, c + j);
  for (; j < t.width; ++j) dot_tile<T, R, 1>(t, a, t.b + j * t.b_step, c + j);
}

// Few columns at a time, so that what the first rows brought in is still near for the next.
template <class T>
void dots(int64_t m, const GemmTile<T>& given) {
  constexpr int64_t kGroup = 8;
  for (int64_t j = 0; j < given.width; j += kGroup) {
    GemmTile<T> t = given;
    t.b += j * t.b_step;
    t.c += j;
    t.width = given.width - j < kGroup ? given.width - j : kGroup;
    int64_t i = 0;
    for (; i + 4 <= m; i += 4) dot_rows<T, 4, 4>(t, t.a + i * t.a_step, t.c + i * t.c_step);
    const T* a = t.a + i * t.a_step;
    T* c = t.c + i * t.c_step;
    if (m - i == 3) dot_rows<T, 3, 4>(t, a, c);
    if (m - i == 2) dot_rows<T, 2, 8>(t, a, c);
    if (m - i == 1) dot_rows<T, 1, 8>(t, a, c);
  }
}

// R rows of c, to which N rows of b are added, each times an element of a; or written there.
template <class T, int R, int N>
TESSERA_INLINE void add_rows(const GemmRows<T>& t, int64_t p, int64_t begin, int64_t end,
                             bool add) {
  T factors[R][N];
#pragma GCC unroll 16
  for (int i = 0; i < R; ++i) {
#pragma GCC unroll 8
    for (int l = 0; l < N; ++l) factors[i][l] = t.a[i * t.a_row + (p + l) * t.a_column];
  }
  const T* const b = t.b + p * t.b_step;
  T* const c = t.c;
  const int64_t b_step = t.b_step, c_step = t.c_step;
  const auto sum = [&](int64_t j, const auto& load_one, const auto& store_one)
      __attribute__((always_inline)) {
    V<T> total[R];
#pragma GCC unroll 16
    for (int i = 0; i < R; ++i) total[i] = add ? load_one(c + i * c_step + j) : V<T>{};
#pragma GCC unroll 8
    for (int l = 0; l < N; ++l) {
      const V<T> row = load_one(b + l * b_step + j);
#pragma GCC unroll 16
      for (int i = 0; i < R; ++i) total[i] += factors[i][l] * row;
    }
#pragma GCC unroll 16
    for (int i = 0; i < R; ++i) store_one(c + i * c_step + j, total[i]);
  };
  int64_t j = begin;
  for (; j + kLanes<T> <= end; j += kLanes<T>) {
    sum(
        j, [](const T* at) __attribute__((always_inline)) { return load(at); },
        [](T * at, V<T> v) __attribute__((always_inline)) { store(at, v); });
  }
  if (j == end) return;
  const Part<T> part(end - j);
  sum(
      j, [&](const T* at) __attribute__((always_inline)) { return part.load(at); },
      [&](T * at, V<T> v) __attribute__((always_inline)) { part.store(at, v); });
}

// Rows of b are walked along strips of c that stay in the second-level cache, long enough for the
// hardware to foresee them.
template <class T, int R>
void stream_rows(const GemmRows<T>& t) {
  constexpr int kTogether = 8;  // rows of b: as many walks as the hardware can follow
  constexpr int64_t strip = (128 << 10) / R / 64 * 64 / int64_t(sizeof(T));
  for (int64_t j = 0; j < t.width; j += strip) {
    const int64_t end = t.width - j < strip ? t.width : j + strip;
    int64_t p = 0;
    for (; p + kTogether <= t.k; p += kTogether) add_rows<T, R, kTogether>(t, p, j, end, p > 0);
    for (; p < t.k; ++p) add_rows<T, R, 1>(t, p, j, end, p > 0);
  }
}

template <class T, int R = kFewGemmRows>
void few_rows(const GemmRows<T>& t) {
  if (t.m == R) return stream_rows<T, R>(t);
  if constexpr (R > 1) few_rows<T, R - 1>(t);
}
