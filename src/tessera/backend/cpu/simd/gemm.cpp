// Compiled once per instruction set, like simd/loops.cpp and under the same rule: no symbol but the
// table may leave this file. Products may be contracted into fused multiply-adds here.
#include "tessera/backend/cpu/gemm.h"

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

#define TESSERA_INLINE [[gnu::always_inline]] inline
#define TESSERA_JOIN_(a, b) a##b
#define TESSERA_JOIN(a, b) TESSERA_JOIN_(a, b)

namespace tessera::cpu {

namespace {

// kRows is chosen so that the accumulators of the largest tile, one row of b and one element of a
// just fill the registers (see widest), with few instructions for a multiplication; kUnrolled steps
// along k are written out.
#if defined(__AVX512F__)
constexpr int kVectorBytes = 64, kRegisters = 32, kRows = 9, kUnrolled = 4;
#elif defined(__AVX2__)
constexpr int kVectorBytes = 32, kRegisters = 16, kRows = 6, kUnrolled = 2;
#elif defined(__aarch64__)
constexpr int kVectorBytes = 16, kRegisters = 32, kRows = 8, kUnrolled = 4;
#else
constexpr int kVectorBytes = 16, kRegisters = 16, kRows = 4, kUnrolled = 2;
#endif
static_assert(kRows <= kMaxGemmRows);

constexpr int widest(int rows) {
  const int fitting = (kRegisters - 1) / (rows + 1);
  return fitting < kMaxGemmVectors ? fitting : kMaxGemmVectors;
}
constexpr int kVectors = widest(kRows);

// What packing fetches before it is needed: lines, bytes of a line.
constexpr int64_t kLinesAhead = 8, kBytesAhead = 1024;

template <class T>
struct Vector {
  typedef T V __attribute__((vector_size(kVectorBytes)));
  static constexpr int64_t kLanes = kVectorBytes / int64_t(sizeof(T));
};
template <class T>
using V = typename Vector<T>::V;
template <class T>
constexpr int64_t kLanes = Vector<T>::kLanes;
template <class T>
constexpr int64_t kColumns = kVectors* kLanes<T>;

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

// The first `count` lanes of a vector, 1 to all; the others read as zero and are not written.
#if defined(__AVX512F__)
constexpr bool kReadsExactly = true;
template <class T>
struct Part {
  uint16_t mask;
  TESSERA_INLINE explicit Part(int64_t count) : mask(uint16_t((1u << count) - 1)) {}
  TESSERA_INLINE V<T> load(const T* p) const {
    if constexpr (sizeof(T) == 4) {
      return (V<T>)_mm512_maskz_loadu_ps(mask, p);
    } else {
      return (V<T>)_mm512_maskz_loadu_pd(__mmask8(mask), p);
    }
  }
  TESSERA_INLINE void store(T* p, V<T> v) const {
    if constexpr (sizeof(T) == 4) {
      _mm512_mask_storeu_ps(p, mask, (__m512)v);
    } else {
      _mm512_mask_storeu_pd(p, __mmask8(mask), (__m512d)v);
    }
  }
};
#else
constexpr bool kReadsExactly = false;
template <class T>
struct Part {
  int64_t count;
  TESSERA_INLINE explicit Part(int64_t count_) : count(count_) {}
  TESSERA_INLINE V<T> load(const T* p) const {
    if (count == kLanes<T>) return cpu::load(p);
    T lanes[kLanes<T>] = {};
    for (int64_t i = 0; i < count; ++i) lanes[i] = p[i];
    return cpu::load(lanes);
  }
  TESSERA_INLINE void store(T* p, V<T> v) const {
    if (count == kLanes<T>) return cpu::store(p, v);
    T lanes[kLanes<T>];
    cpu::store(lanes, v);
    for (int64_t i = 0; i < count; ++i) p[i] = lanes[i];
  }
};
#endif

// Where the elements of a are: three rows to a pointer, so that the others are within reach of
// x86's addressing modes.
template <class T, int R, bool kByRows>
struct Left {
  static constexpr int kPointers = kByRows ? (R + 2) / 3 : 1;
  const T* at[kPointers];
  int64_t step;

  TESSERA_INLINE Left(const T* a, int64_t a_step) : step(a_step) {
    for (int i = 0; i < kPointers; ++i) at[i] = a + 3 * i * a_step;
  }
  TESSERA_INLINE T operator[](int i) const { return kByRows ? at[i / 3][i % 3 * step] : at[0][i]; }
  TESSERA_INLINE void advance() {
#pragma GCC unroll 4
    for (int i = 0; i < kPointers; ++i) at[i] += kByRows ? 1 : step;
  }
};

template <class T, int R, int W, bool kByRows>
void gemm_kernel(const GemmTile<T>& t) {
  constexpr int64_t kLast = (W - 1) * kLanes<T>;
  // Locals: the stores to c might change what t refers to.
  const int64_t k = t.k, b_step = t.b_step, c_step = t.c_step;
  const bool add = t.add;
  const Part<T> part(t.width - kLast);
  V<T> acc[R][W] = {};
  Left<T, R, kByRows> a(t.a, t.a_step);
  const T* b = t.b;
  const auto step = [&]() __attribute__((always_inline)) {
    V<T> row[W];
#pragma GCC unroll 8
    for (int w = 0; w < W - 1; ++w) row[w] = load(b + w * kLanes<T>);
    row[W - 1] = kReadsExactly ? part.load(b + kLast) : load(b + kLast);
#pragma GCC unroll 16
    for (int i = 0; i < R; ++i) {
      const T factor = a[i];
#pragma GCC unroll 8
      for (int w = 0; w < W; ++w) acc[i][w] += factor * row[w];
    }
    a.advance();
    b += b_step;
  };
  // Rows of c are asked for one after the other: all at once they would keep b waiting.
  const T* soon = t.c;
  const char* later = t.later;
  const int64_t later_step = t.later_step;
  int64_t rows_to_ask = R;
  const auto ask = [&]() __attribute__((always_inline)) {
    if (rows_to_ask == 0) return;
#pragma GCC unroll 8
    for (int w = 0; w < W; ++w) __builtin_prefetch(soon + w * kLanes<T>, 1);
    soon += c_step;
    if (later != nullptr) {
      for (int w = 0; w < 2; ++w) __builtin_prefetch(later + w * 64, 0, 2);
      later += later_step;
    }
    --rows_to_ask;
  };
  int64_t p = 0;
  if (t.ahead_vectors > 0) {
    const T* ahead = t.ahead;
    for (const int64_t ahead_vectors = t.ahead_vectors, ahead_step = t.ahead_step; p < k; ++p) {
      for (int64_t w = 0; w < ahead_vectors; ++w) __builtin_prefetch(ahead + w * kLanes<T>);
      ahead += ahead_step;
      ask();
      step();
    }
  }
  for (; p + kUnrolled <= k; p += kUnrolled) {
    ask();
#pragma GCC unroll 4
    for (int u = 0; u < kUnrolled; ++u) step();
  }
  for (; p < k; ++p) step();
  T* c = t.c;
#pragma GCC unroll 16
  for (int i = 0; i < R; ++i, c += c_step) {
#pragma GCC unroll 8
    for (int w = 0; w < W - 1; ++w) {
      T* to = c + w * kLanes<T>;
      store(to, add ? load(to) + acc[i][w] : acc[i][w]);
    }
    part.store(c + kLast, add ? part.load(c + kLast) + acc[i][W - 1] : acc[i][W - 1]);
  }
}

#include "tessera/backend/cpu/simd/gemm_pack.h"
#include "tessera/backend/cpu/simd/gemm_sums.h"

template <class T, int R, int W>
constexpr void fill_row(GemmLoops<T>& loops) {
  if constexpr (W > 0) {
    if constexpr (W <= kVectors || W == widest(R)) {
      loops.by_columns[R - 1][W - 1] = gemm_kernel<T, R, W, false>;
      loops.by_rows[R - 1][W - 1] = gemm_kernel<T, R, W, true>;
    }
    fill_row<T, R, W - 1>(loops);
  }
}

template <class T, int R>
constexpr void fill_kernels(GemmLoops<T>& loops) {
  if constexpr (R > 0) {
    loops.widest[R - 1] = widest(R);
    fill_row<T, R, widest(R)>(loops);
    fill_kernels<T, R - 1>(loops);
  }
}

template <class T>
constexpr GemmLoops<T> make_loops() {
  GemmLoops<T> loops{};
  loops.rows = kRows;
  loops.vectors = kVectors;
  loops.lanes = int(kLanes<T>);
  loops.columns = int(kColumns<T>);
  loops.reads_exactly = kReadsExactly;
  loops.copy_b = copy_lines<T, kColumns<T>>;
  loops.copy_a = copy_lines<T, kRows>;
  loops.transpose_b = transpose_lines<T, kColumns<T>>;
  loops.dots = dots<T>;
  loops.few_rows = few_rows<T>;
  fill_kernels<T, kRows>(loops);
  return loops;
}

}  // namespace

extern constinit const GemmTable TESSERA_JOIN(kGemm_, TESSERA_SIMD_NAME);
constinit const GemmTable TESSERA_JOIN(kGemm_, TESSERA_SIMD_NAME) = {make_loops<float>(),
                                                                     make_loops<double>()};

}  // namespace tessera::cpu
