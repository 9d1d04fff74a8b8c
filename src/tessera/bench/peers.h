// The CPU libraries that matrix products are compared with, opened at run time, each as it is at
// its best: all threads, and told what the processor is where it would not find out.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tessera::bench {

// c (m, n) = a (m, k) b (k, n), row-major f32; with `transposed`, b lies as (n, k).
struct Gemm {
  int64_t m, n, k;
  bool transposed;
  const float *a, *b;
  float* c;
};

struct Peer {
  std::string name;                          // "oneDNN 2.6.3"
  void (*multiply)(const Gemm& gemm);        // on all threads
  void (*multiply_alone)(const Gemm& gemm);  // on the caller's; null: it cannot do that
};

// Those installed; opened by the first call.
const std::vector<Peer>& peers();

// What OpenBLAS must be told by OPENBLAS_CORETYPE so as to use this instruction set: releases do
// not know processors newer than themselves, and take them for old ones. Null: nothing.
const char* openblas_core(bool has_avx512, bool has_avx2);

}  // namespace tessera::bench
