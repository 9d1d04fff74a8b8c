// Packing: what makes operands contiguous in the order the kernels read them. Included by
// simd/gemm.cpp.

template <class T>
struct Quad {
  typedef T V __attribute__((vector_size(4 * sizeof(T))));
};
template <class T>
using Q = typename Quad<T>::V;

template <class T>
TESSERA_INLINE Q<T> load_quad(const T* p) {
  Q<T> v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}

// N whole tiles side by side: long runs of each line are read at once.
template <class T, int64_t kStep, int N>
TESSERA_INLINE void copy_tiles(const GemmPack<T>& pack, T* to, const T* from) {
  const int64_t tile = pack.tile, apart = kStep * pack.count, step = pack.from_step;
  for (int64_t l = 0; l < pack.count; ++l, to += kStep, from += step) {
    const T* soon = from + kLinesAhead * step;
#pragma GCC unroll 4
    for (int t = 0; t < N; ++t) {
      __builtin_prefetch(soon + t * tile);
      __builtin_memcpy(to + t * apart, from + t * tile, kStep * sizeof(T));
    }
    __builtin_prefetch(soon + (N - 1) * tile + kStep - 1);
  }
}

// The last tile, of less than kStep elements.
template <class T, int64_t kStep>
TESSERA_INLINE void copy_rest(const GemmPack<T>& pack, T* to, const T* from, int64_t length) {
  if constexpr (kStep % kLanes<T> == 0) {
    const int64_t whole = length / kLanes<T> * kLanes<T>;
    const bool partial = whole < length;
    const Part<T> part(partial ? length - whole : 1);
    for (int64_t l = 0; l < pack.count; ++l, to += kStep, from += pack.from_step) {
      int64_t e = 0;
      for (; e < whole; e += kLanes<T>) store(to + e, load(from + e));
      if (partial) store(to + e, part.load(from + e));
    }
  } else {
    for (int64_t l = 0; l < pack.count; ++l, to += kStep, from += pack.from_step) {
      for (int64_t e = 0; e < length; ++e) to[e] = from[e];
    }
  }
}

template <class T, int64_t kStep>
void copy_lines(const GemmPack<T>& pack) {
  T* to = pack.to;
  int64_t e = 0;
  for (; e + 3 * pack.tile + kStep <= pack.length; e += 4 * pack.tile) {
    copy_tiles<T, kStep, 4>(pack, to, pack.from + e);
    to += 4 * kStep * pack.count;
  }
  for (; e + kStep <= pack.length; e += pack.tile, to += kStep * pack.count) {
    copy_tiles<T, kStep, 1>(pack, to, pack.from + e);
  }
  if (e < pack.length) copy_rest<T, kStep>(pack, to, pack.from + e, pack.length - e);
}

// Turns 4 x 4 elements.
template <class T>
TESSERA_INLINE void transpose_quads(Q<T> (&q)[4]) {
  const Q<T> ab0 = __builtin_shufflevector(q[0], q[1], 0, 4, 1, 5);
  const Q<T> ab1 = __builtin_shufflevector(q[0], q[1], 2, 6, 3, 7);
  const Q<T> cd0 = __builtin_shufflevector(q[2], q[3], 0, 4, 1, 5);
  const Q<T> cd1 = __builtin_shufflevector(q[2], q[3], 2, 6, 3, 7);
  q[0] = __builtin_shufflevector(ab0, cd0, 0, 1, 4, 5);
  q[1] = __builtin_shufflevector(ab0, cd0, 2, 3, 6, 7);
  q[2] = __builtin_shufflevector(ab1, cd1, 0, 1, 4, 5);
  q[3] = __builtin_shufflevector(ab1, cd1, 2, 3, 6, 7);
}

// Four lines side by side.
template <class T, int64_t kStep>
TESSERA_INLINE void transpose_four(T* to, const T* from, int64_t step, int64_t length) {
  constexpr int64_t kCacheLine = 64 / int64_t(sizeof(T));
  constexpr int64_t kAhead = kBytesAhead / int64_t(sizeof(T));
  int64_t e = 0;
  for (; e + 4 <= length; e += 4, to += 4 * kStep) {
    if (e % kCacheLine == 0) {
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) __builtin_prefetch(from + i * step + e + kAhead);
    }
    Q<T> q[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) q[i] = load_quad(from + i * step + e);
    transpose_quads<T>(q);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) __builtin_memcpy(to + i * kStep, &q[i], sizeof q[i]);
  }
  for (; e < length; ++e, to += kStep) {
    for (int i = 0; i < 4; ++i) to[i] = from[i * step + e];
  }
}

template <class T, int64_t kStep>
void transpose_lines(const GemmPack<T>& pack) {
  int64_t l = 0;
  for (; l + 4 <= pack.count; l += 4) {
    transpose_four<T, kStep>(pack.to + l, pack.from + l * pack.from_step, pack.from_step,
                             pack.length);
  }
  for (; l < pack.count; ++l) {
    for (int64_t e = 0; e < pack.length; ++e) {
      pack.to[e * kStep + l] = pack.from[l * pack.from_step + e];
    }
  }
  if (kReadsExactly) return;
  for (; l % kLanes<T> != 0; ++l) {
    for (int64_t e = 0; e < pack.length; ++e) pack.to[e * kStep + l] = 0;
  }
}
