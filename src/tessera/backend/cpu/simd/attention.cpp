// Compiled once per instruction set, like simd/loops.cpp and under the same rule: no symbol but the
// table may leave this file. Products may be contracted into fused multiply-adds here.
#include "tessera/backend/cpu/attention.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define TESSERA_INLINE [[gnu::always_inline]] inline
#define TESSERA_JOIN_(a, b) a##b
#define TESSERA_JOIN(a, b) TESSERA_JOIN_(a, b)

namespace tessera::cpu {

namespace {

#include "tessera/backend/cpu/simd/types.h"
//
#include "tessera/backend/cpu/simd/math.h"
//
#include "tessera/backend/cpu/simd/exp_below.h"

// Widths are whole registers (gemm.h): a loop over one has a fixed count, which costs no more than
// its instructions.
template <class T>
constexpr int64_t kLanes = kRegister / int64_t(sizeof(T));
template <class T>
struct Register {
  typedef T V __attribute__((vector_size(kRegister)));
};
template <class T>
using V = typename Register<T>::V;

template <class T>
TESSERA_INLINE V<T> load(const T* p) {
  V<T> v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}
template <class T>
TESSERA_INLINE void store(T* p, V<T> v) {
  __builtin_memcpy(p, &v, sizeof v);
}

// e^x of a weight before it is scaled, which is not above 0 but for rounding. What lies below the
// normal range is 0.
template <class X>
TESSERA_INLINE X exp_weight(X x) {
  X e[1] = {x};
  exp_up<0>(e);
  return x < every<X>(-0x1.5d58ap+6f) ? X{} : e[0];  // ln 2^-126
}
TESSERA_INLINE double exp_weight(double x) { return exp(x); }
TESSERA_INLINE V<double> exp_weight(V<double> x) {
  for (int64_t i = 0; i < kLanes<double>; ++i) x[i] = exp_weight(x[i]);
  return x;
}

typedef float F8 __attribute__((vector_size(32)));

TESSERA_INLINE F8 load8(const float* p) {
  F8 v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}

// Eight rows of s become eight columns of d.
TESSERA_INLINE void transpose8(float* d, int64_t d_stride, const float* s, int64_t s_stride) {
  F8 r[8], t[8];
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) r[i] = load8(s + i * s_stride);
#pragma GCC unroll 4
  for (int i = 0; i < 8; i += 2) {  // pairs of rows interleaved
    t[i] = __builtin_shufflevector(r[i], r[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
    t[i + 1] = __builtin_shufflevector(r[i], r[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
  }
#pragma GCC unroll 2
  for (int i = 0; i < 8; i += 4) {  // fours
    r[i] = __builtin_shufflevector(t[i], t[i + 2], 0, 1, 8, 9, 4, 5, 12, 13);
    r[i + 1] = __builtin_shufflevector(t[i], t[i + 2], 2, 3, 10, 11, 6, 7, 14, 15);
    r[i + 2] = __builtin_shufflevector(t[i + 1], t[i + 3], 0, 1, 8, 9, 4, 5, 12, 13);
    r[i + 3] = __builtin_shufflevector(t[i + 1], t[i + 3], 2, 3, 10, 11, 6, 7, 14, 15);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {  // halves
    const F8 low = __builtin_shufflevector(r[i], r[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
    const F8 high = __builtin_shufflevector(r[i], r[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
    __builtin_memcpy(d + i * d_stride, &low, sizeof low);
    __builtin_memcpy(d + (i + 4) * d_stride, &high, sizeof high);
  }
}

typedef float F4 __attribute__((vector_size(16)));

TESSERA_INLINE void transpose4(float* d, int64_t d_stride, const float* s, int64_t s_stride) {
  F4 r[4], t[4];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) __builtin_memcpy(&r[i], s + i * s_stride, sizeof r[i]);
  t[0] = __builtin_shufflevector(r[0], r[1], 0, 4, 1, 5);
  t[1] = __builtin_shufflevector(r[0], r[1], 2, 6, 3, 7);
  t[2] = __builtin_shufflevector(r[2], r[3], 0, 4, 1, 5);
  t[3] = __builtin_shufflevector(r[2], r[3], 2, 6, 3, 7);
  r[0] = __builtin_shufflevector(t[0], t[2], 0, 1, 4, 5);
  r[1] = __builtin_shufflevector(t[0], t[2], 2, 3, 6, 7);
  r[2] = __builtin_shufflevector(t[1], t[3], 0, 1, 4, 5);
  r[3] = __builtin_shufflevector(t[1], t[3], 2, 3, 6, 7);
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) __builtin_memcpy(d + i * d_stride, &r[i], sizeof r[i]);
}

template <class T>
void transpose(int64_t n, int64_t m, T* d, int64_t d_stride, const T* s, int64_t s_stride) {
  int64_t i = 0;
  if constexpr (sizeof(T) == 4) {
    for (; i + 8 <= n; i += 8) {
      int64_t j = 0;
      for (; j + 8 <= m; j += 8) {
        transpose8(d + j * d_stride + i, d_stride, s + i * s_stride + j, s_stride);
      }
      for (; j < m; ++j) {
        for (int64_t k = i; k < i + 8; ++k) d[j * d_stride + k] = s[k * s_stride + j];
      }
    }
    for (; i + 4 <= n; i += 4) {
      int64_t j = 0;
      for (; j + 4 <= m; j += 4) {
        transpose4(d + j * d_stride + i, d_stride, s + i * s_stride + j, s_stride);
      }
      for (; j < m; ++j) {
        for (int64_t k = i; k < i + 4; ++k) d[j * d_stride + k] = s[k * s_stride + j];
      }
    }
  }
  for (; i < n; ++i) {
    for (int64_t j = 0; j < m; ++j) d[j * d_stride + i] = s[i * s_stride + j];
  }
}

template <class T>
void dots(int64_t n, int64_t m, T* d, const T* a, int64_t a_stride, const T* b, int64_t b_stride) {
  for (int64_t i = 0; i < n; ++i, a += a_stride, b += b_stride) {
    V<T> total = {};
    int64_t j = 0;
    for (; j + kLanes<T> <= m; j += kLanes<T>) total += load(a + j) * load(b + j);
    T lanes[kLanes<T>];
    store(lanes, total);
#pragma GCC unroll 4
    for (int64_t width = kLanes<T> / 2; width > 0; width /= 2) {
      for (int64_t k = 0; k < width; ++k) lanes[k] += lanes[k + width];
    }
    for (; j < m; ++j) lanes[0] += a[j] * b[j];
    d[i] = lanes[0];
  }
}

template <class T>
TESSERA_INLINE T greater(T a, T b) {
  return a > b ? a : b;
}

template <class T>
void fold_keys(int64_t keys, int64_t width, int64_t stride, T* __restrict s, T* __restrict top,
               T* __restrict sum, int64_t columns, T* __restrict y) {
  T base[kMaxAttentionWidth], shrink[kMaxAttentionWidth];
  for (int64_t j = 0; j < width; j += kLanes<T>) {
    V<T> a = load(top + j), b = a;
    int64_t k = 0;
    for (; k + 2 <= keys; k += 2) {
      a = greater(a, load(s + k * stride + j));
      b = greater(b, load(s + (k + 1) * stride + j));
    }
    if (k < keys) a = greater(a, load(s + k * stride + j));
    store(base + j, greater(a, b));
  }
  bool moved = false;
  for (int64_t j = 0; j < width; ++j) moved |= base[j] != top[j];
  for (int64_t j = 0; j < width; ++j) {
    const T most = base[j];
    // -inf less -inf has no value; any other shift gives exp(-inf) = 0.
    base[j] = most == lowest<T>() ? T(0) : most;
    shrink[j] = exp_weight(top[j] - base[j]);
    top[j] = most;
    sum[j] *= shrink[j];
  }
  for (int64_t j = 0; j < width; j += kLanes<T>) {
    const V<T> shift = load(base + j);
    V<T> total = load(sum + j);
    for (int64_t k = 0; k < keys; ++k) {
      T* row = s + k * stride + j;
      const V<T> p = exp_weight(load(row) - shift);
      store(row, p);
      total += p;
    }
    store(sum + j, total);
  }
  if (!moved) return;
  for (int64_t j = 0; j < width; ++j) {
    for (int64_t i = 0; i < columns; ++i) y[j * columns + i] *= shrink[j];
  }
}

template <class T>
TESSERA_INLINE T logarithm(T x) {
  return sizeof(T) == 4 ? T(__builtin_logf(float(x))) : T(__builtin_log(double(x)));
}

template <class T>
void soften_rows(int64_t rows, int64_t n, int64_t stride, T* s, T* lse) {
  constexpr int64_t kLanes = 64 / int64_t(sizeof(T));
  for (int64_t i = 0; i < rows; ++i, s += stride) {
    T top[kLanes], sum[kLanes] = {};
    for (int64_t k = 0; k < kLanes; ++k) top[k] = lowest<T>();
    int64_t j = 0;
    for (; j + kLanes <= n; j += kLanes) {
      for (int64_t k = 0; k < kLanes; ++k) top[k] = greater(top[k], s[j + k]);
    }
    for (; j < n; ++j) top[0] = greater(top[0], s[j]);
    for (int64_t k = 1; k < kLanes; ++k) top[0] = greater(top[0], top[k]);
    const bool nothing = top[0] == lowest<T>();  // seen, or NaN, which is greater than nothing
    const T base = nothing ? T(0) : top[0];
    for (j = 0; j + kLanes <= n; j += kLanes) {
      for (int64_t k = 0; k < kLanes; ++k) {
        s[j + k] = exp(s[j + k] - base);
        sum[k] += s[j + k];
      }
    }
    for (; j < n; ++j) {
      s[j] = exp(s[j] - base);
      sum[0] += s[j];
    }
    for (int64_t width = kLanes / 2; width > 0; width /= 2) {
      for (int64_t k = 0; k < width; ++k) sum[k] += sum[k + width];
    }
    const bool blind = nothing && sum[0] == 0;
    const T shrink = blind ? T(0) : 1 / sum[0];
    for (j = 0; j < n; ++j) s[j] *= shrink;
    lse[i] = blind ? T(0) : base + logarithm(sum[0]);
  }
}

template <class T>
void scale_rows(int64_t rows, int64_t columns, T* d, const T* y, const T* by) {
  for (int64_t i = 0; i < rows; ++i, d += columns, y += columns) {
    const T factor = by[i];
    for (int64_t j = 0; j < columns; ++j) d[j] = y[j] * factor;
  }
}

// A column of registers at a time: the constants of exp stay where they are from row to row.
template <bool kDrops, class T>
TESSERA_INLINE void weigh_columns(int64_t rows, int64_t width, int64_t stride, T* __restrict s,
                                  T* __restrict dp, const T* lse, const T* along,
                                  const T* __restrict kept) {
  for (int64_t j = 0; j < width; j += kLanes<T>) {
    for (int64_t i = 0; i < rows; ++i) {
      T *score = s + i * stride + j, *slope = dp + i * stride + j;
      const V<T> p = exp_weight(load(score) - lse[i]);
      const V<T> factor = kDrops ? load(kept + i * stride + j) : V<T>{} + 1;
      store(score, kDrops ? p * factor : p);
      store(slope, p * ((kDrops ? load(slope) * factor : load(slope)) - along[i]));
    }
  }
}

template <class T>
void weigh_rows(int64_t rows, int64_t width, int64_t stride, T* s, T* dp, const T* lse,
                const T* along, const T* kept) {
  if (kept == nullptr) {
    weigh_columns<false>(rows, width, stride, s, dp, lse, along, kept);
  } else {
    weigh_columns<true>(rows, width, stride, s, dp, lse, along, kept);
  }
}

template <class T>
void scale(int64_t n, T* x, T by) {
  for (int64_t i = 0; i < n; ++i) x[i] *= by;
}

template <class T>
void multiply(int64_t n, T* __restrict x, const T* __restrict by) {
  for (int64_t i = 0; i < n; ++i) x[i] *= by[i];
}

template <class T>
void add(int64_t n, T* __restrict x, const T* __restrict more) {
  for (int64_t i = 0; i < n; ++i) x[i] += more[i];
}

template <class T>
void add_mask(int64_t n, T* __restrict s, const T* __restrict mask) {
  for (int64_t i = 0; i < n; ++i) s[i] = mask[i] == lowest<T>() ? mask[i] : s[i] + mask[i];
}

template <class T>
void hide(int64_t n, T* __restrict s, const uint8_t* __restrict seen) {
  for (int64_t i = 0; i < n; ++i) s[i] = seen[i] != 0 ? s[i] : lowest<T>();
}

template <class T>
void keep(int64_t n, T* __restrict factor, const float* __restrict draw, float most, T by) {
  for (int64_t i = 0; i < n; ++i) factor[i] = draw[i] < most ? by : T(0);
}

template <class T>
constexpr AttentionLoops<T> make_loops() {
  return {transpose<T>, dots<T>,     fold_keys<T>, soften_rows<T>, scale_rows<T>, weigh_rows<T>,
          scale<T>,     multiply<T>, add<T>,       add_mask<T>,    hide<T>,       keep<T>};
}

}  // namespace

extern constinit const AttentionTable TESSERA_JOIN(kAttention_, TESSERA_SIMD_NAME);
constinit const AttentionTable TESSERA_JOIN(kAttention_, TESSERA_SIMD_NAME) = {
    make_loops<float>(), make_loops<double>()};

}  // namespace tessera::cpu
