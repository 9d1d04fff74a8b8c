// Compiled once per instruction set, like simd/loops.cpp and under the same rule: no symbol but the
// table may leave this file. Products may be contracted into fused multiply-adds here.
#include "tessera/backend/cpu/gemm.h"

#define TESSERA_INLINE [[gnu::always_inline]] inline
#define TESSERA_JOIN_(a, b) a##b
#define TESSERA_JOIN(a, b) TESSERA_JOIN_(a, b)

namespace tessera::cpu {

namespace {

// Tiles are as large as the registers allow: kRows * kWide accumulators, kWide vectors of b.
#if defined(__AVX512F__)
constexpr int kVectorBytes = 64, kRows = 12;
#elif defined(__AVX2__)
constexpr int kVectorBytes = 32, kRows = 6;
#else
constexpr int kVectorBytes = 16, kRows = 4;
#endif
constexpr int kWide = 2;

template <class T>
struct Vector {
  typedef T V __attribute__((vector_size(kVectorBytes)));
  static constexpr int64_t kLanes = kVectorBytes / int64_t(sizeof(T));
};
template <class T>
using V = typename Vector<T>::V;

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

template <class T, int R>
void gemm_kernel(int64_t k, const T* a, const T* b, int64_t b_stride, T* c, int64_t c_stride,
                 bool add) {
  constexpr int64_t kLanes = Vector<T>::kLanes;
  V<T> acc[R][kWide] = {};
  for (int64_t p = 0; p < k; ++p, a += R, b += b_stride) {
    V<T> row[kWide];
#pragma GCC unroll 4
    for (int w = 0; w < kWide; ++w) row[w] = load(b + w * kLanes);
#pragma GCC unroll 16
    for (int i = 0; i < R; ++i) {
#pragma GCC unroll 4
      for (int w = 0; w < kWide; ++w) acc[i][w] += a[i] * row[w];
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < R; ++i, c += c_stride) {
#pragma GCC unroll 4
    for (int w = 0; w < kWide; ++w) {
      store(c + w * kLanes, add ? load(c + w * kLanes) + acc[i][w] : acc[i][w]);
    }
  }
}

template <class T>
TESSERA_INLINE T sum_lanes(V<T> v) {
  T lanes[Vector<T>::kLanes];
  __builtin_memcpy(lanes, &v, sizeof v);
  for (int64_t width = Vector<T>::kLanes / 2; width >= 1; width /= 2) {
    for (int64_t i = 0; i < width; ++i) lanes[i] += lanes[i + width];
  }
  return lanes[0];
}

// Four columns side by side, two accumulators each.
template <class T, int N>
TESSERA_INLINE void dot_columns(int64_t k, const T* a, const T* b, int64_t b_stride, T* c) {
  constexpr int64_t kLanes = Vector<T>::kLanes;
  V<T> even[N] = {}, odd[N] = {};
  int64_t p = 0;
  for (; p + 2 * kLanes <= k; p += 2 * kLanes) {
    const V<T> a0 = load(a + p), a1 = load(a + p + kLanes);
#pragma GCC unroll 4
    for (int j = 0; j < N; ++j) {
      even[j] += a0 * load(b + j * b_stride + p);
      odd[j] += a1 * load(b + j * b_stride + p + kLanes);
    }
  }
#pragma GCC unroll 4
  for (int j = 0; j < N; ++j) {
    T tail = 0;
    for (int64_t q = p; q < k; ++q) tail += a[q] * b[j * b_stride + q];
    c[j] = sum_lanes<T>(even[j] + odd[j]) + tail;
  }
}

template <class T>
void dots(int64_t n, int64_t k, const T* a, const T* b, int64_t b_stride, T* c) {
  int64_t j = 0;
  for (; j + 4 <= n; j += 4) dot_columns<T, 4>(k, a, b + j * b_stride, b_stride, c + j);
  for (; j < n; ++j) dot_columns<T, 1>(k, a, b + j * b_stride, b_stride, c + j);
}

template <class T, int R>
constexpr void fill_kernels(GemmLoops<T>& loops) {
  if constexpr (R > 0) {
    fill_kernels<T, R - 1>(loops);
    loops.kernel[R - 1] = gemm_kernel<T, R>;
  }
}

template <class T>
constexpr GemmLoops<T> make_loops() {
  GemmLoops<T> loops{};
  loops.rows = kRows;
  loops.columns = int(kWide * Vector<T>::kLanes);
  loops.dots = dots<T>;
  fill_kernels<T, kRows>(loops);
  return loops;
}

}  // namespace

extern constinit const GemmTable TESSERA_JOIN(kGemm_, TESSERA_SIMD_NAME);
constinit const GemmTable TESSERA_JOIN(kGemm_, TESSERA_SIMD_NAME) = {make_loops<float>(),
                                                                     make_loops<double>()};

}  // namespace tessera::cpu
