// The innermost loops of attention beside its products, one table per instruction set (see
// loops.h). Matrices are row-major; `width` columns stand side by side.
#pragma once

#include <cstdint>

namespace tessera::cpu {

inline constexpr int64_t kMaxAttentionWidth = 64;

template <class T>
struct AttentionLoops {
  // d[j * d_stride + i] = s[i * s_stride + j] for i in [0, n), j in [0, m).
  void (*transpose)(int64_t n, int64_t m, T* d, int64_t d_stride, const T* s, int64_t s_stride);

  // d[i] = Σ_j a[i * a_stride + j] · b[i * b_stride + j] for i in [0, n), j in [0, m).
  void (*dots)(int64_t n, int64_t m, T* d, const T* a, int64_t a_stride, const T* b,
               int64_t b_stride);

  // Forward, a column per query: s (keys, width), rows `stride` apart, becomes exp(s - top), where
  // top and sum (width) become those of the keys so far with these; y (width, columns) is scaled
  // from the old top to the new one. A column whose top is -inf has seen nothing.
  void (*fold_keys)(int64_t keys, int64_t width, int64_t stride, T* s, T* top, T* sum,
                    int64_t columns, T* y);

  // Rows `stride` apart: s becomes its softmax, lse the logarithm of its sum of exponentials. A row
  // of -inf alone becomes 0, and lse 0.
  void (*soften_rows)(int64_t rows, int64_t n, int64_t stride, T* s, T* lse);

  // d[i][j] = y[i][j] · by[i]
  void (*scale_rows)(int64_t rows, int64_t columns, T* d, const T* y, const T* by);

  // Backward, a row per query, `stride` apart. In: scores s and dp = g vᵀ. Out:
  // s = exp(s - lse) · kept and dp = exp(s - lse) · (dp · kept - along). `kept` is null where
  // nothing is dropped.
  void (*weigh_rows)(int64_t rows, int64_t width, int64_t stride, T* s, T* dp, const T* lse,
                     const T* along, const T* kept);

  void (*scale)(int64_t n, T* x, T by);
  void (*multiply)(int64_t n, T* x, const T* by);
  void (*add)(int64_t n, T* x, const T* more);
  // s + mask; -inf wherever the mask is.
  void (*add_mask)(int64_t n, T* s, const T* mask);
  // -inf where `seen` is 0.
  void (*hide)(int64_t n, T* s, const uint8_t* seen);
  // factor = draw < keep ? scale : 0
  void (*keep)(int64_t n, T* factor, const float* draw, float keep, T scale);
};

struct AttentionTable {
  AttentionLoops<float> f32;
  AttentionLoops<double> f64;
};

}  // namespace tessera::cpu
