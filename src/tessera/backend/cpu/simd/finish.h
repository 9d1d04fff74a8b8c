// Blocks of products, finished while they are near (loops.h). Included by simd/loops.cpp.

struct Same {
  template <class T>
  TESSERA_INLINE static T apply(T x, T) {
    return x;
  }
};
struct Relu {  // NaN stays NaN
  template <class T>
  TESSERA_INLINE static T apply(T x, T) {
    return x <= 0 ? T(0) : x;
  }
};

// c += bias, written to `kept` as well: past the caches, where nobody wants it soon.
template <class T>
TESSERA_INLINE void keep_row(int64_t n, T* __restrict c, const T* __restrict bias,
                             T* __restrict kept, bool streams) {
  constexpr int64_t kLanes = Wide<T>::kLanes;
  int64_t j = 0;
  for (; streams && j + kLanes <= n; j += kLanes) {
    const V<T> sum = load_wide(c + j) + load_wide(bias + j);
    stream_wide(kept + j, sum);
    store_wide(c + j, sum);
  }
  for (; j < n; ++j) kept[j] = c[j] = c[j] + bias[j];
}

template <class Activation, class T>
TESSERA_INLINE void activate_row(int64_t n, T* c) {
  for (int64_t j = 0; j < n; ++j) c[j] = Activation::template apply<T>(c[j], T());
}

template <class Activation, class T>
TESSERA_INLINE void linear_row(int64_t n, T* __restrict c, const T* __restrict bias) {
  for (int64_t j = 0; j < n; ++j) c[j] = Activation::template apply<T>(c[j] + bias[j], T());
}

TESSERA_INLINE bool begins_a_line(const void* p) {
  return reinterpret_cast<uintptr_t>(p) % 64 == 0;
}

template <class Activation, class T>
void finish_linear(const Finish& f) {
  const T* bias = static_cast<const T*>(f.bias);
  for (int64_t i = 0; i < f.rows; ++i) {
    T* c = static_cast<T*>(f.c) + i * f.c_step;
    if (f.sum == nullptr) {
      linear_row<Activation>(f.columns, c, bias);
      continue;
    }
    T* kept = static_cast<T*>(f.sum) + i * f.sum_step;
    keep_row(f.columns, c, bias, kept, f.streams && begins_a_line(kept));
    activate_row<Activation>(f.columns, c);
  }
  if (f.streams) stream_fence_loop();
}

// Rows that lie apart are not fetched ahead by the hardware.
inline constexpr int64_t kRowsAhead = 4;

template <class T>
TESSERA_INLINE void fetch_row(int64_t n, const T* row) {
  for (int64_t j = 0; j < n; j += Wide<T>::kLanes) __builtin_prefetch(row + j, 0, 2);
}

template <bool kSums, class T>
TESSERA_INLINE void slope_row(int64_t n, T* __restrict c, const T* __restrict x,
                              T* __restrict sums) {
  for (int64_t j = 0; j < n; ++j) {
    const T value = c[j] * Op_gelu_tanh_slope::apply<T>(x[j], T());
    c[j] = value;
    if (kSums) sums[j] += value;
  }
}

template <class T>
void finish_slope(const Finish& f) {
  T* sums = static_cast<T*>(f.sums);
  for (int64_t j = 0; sums != nullptr && j < f.columns; ++j) sums[j] = 0;
  for (int64_t i = 0; i < f.rows; ++i) {
    T* c = static_cast<T*>(f.c) + i * f.c_step;
    const T* x = static_cast<const T*>(f.x) + i * f.x_step;
    if (i + kRowsAhead < f.rows) fetch_row(f.columns, x + kRowsAhead * f.x_step);
    if (sums != nullptr) {
      slope_row<true>(f.columns, c, x, sums);
    } else {
      slope_row<false, T>(f.columns, c, x, nullptr);
    }
  }
}

template <class T>
constexpr FinishLoops finish_loops() {
  return {{finish_linear<Same, T>, finish_linear<Op_gelu_tanh, T>, finish_linear<Relu, T>},
          finish_slope<T>};
}

constexpr void fill_finishes(LoopTable& table) {
  table.finish_f32 = finish_loops<float>();
  table.finish_f64 = finish_loops<double>();
}
