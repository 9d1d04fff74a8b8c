// The innermost part of matrix products, one table per instruction set (see loops.h).
#pragma once

#include <cstdint>

namespace tessera::cpu {

inline constexpr int kMaxGemmRows = 16;

template <class T>
struct GemmLoops {
  int rows, columns;  // of the largest tile: kernel[rows - 1] computes rows x columns

  // c[i * c_stride + j] (+)= Σ_k a[k * r + i] · b[k * b_stride + j] for i in [0, r), j in
  // [0, columns), where r - 1 is the kernel's index. `add`: to what c holds, else it is
  // overwritten.
  void (*kernel[kMaxGemmRows])(int64_t k, const T* a, const T* b, int64_t b_stride, T* c,
                               int64_t c_stride, bool add);

  // c[j] = Σ_k a[k] · b[j * b_stride + k] for j in [0, n).
  void (*dots)(int64_t n, int64_t k, const T* a, const T* b, int64_t b_stride, T* c);
};

struct GemmTable {
  GemmLoops<float> f32;
  GemmLoops<double> f64;
};

}  // namespace tessera::cpu
