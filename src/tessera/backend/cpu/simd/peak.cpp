// Compiled once per instruction set, like simd/loops.cpp and under the same rule: no symbol but the
// table may leave this file.
#include "tessera/backend/cpu/peak.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define TESSERA_JOIN_(a, b) a##b
#define TESSERA_JOIN(a, b) TESSERA_JOIN_(a, b)

namespace tessera::cpu {

namespace {

// Sums enough to cover the latency of a multiply-add at two per cycle, within the registers.
#if defined(__AVX512F__)
constexpr int kVectorBytes = 64, kSums = 16;
#elif defined(__AVX2__)
constexpr int kVectorBytes = 32, kSums = 12;
#elif defined(__aarch64__)
constexpr int kVectorBytes = 16, kSums = 16;
#else
constexpr int kVectorBytes = 16, kSums = 12;
#endif
constexpr int64_t kLanes = kVectorBytes / int64_t(sizeof(float));
typedef float V __attribute__((vector_size(kVectorBytes)));

[[gnu::always_inline]] inline V load(const float* p) {
  V v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}

struct Plain {
  static constexpr int64_t kAlignment = 1;
  [[gnu::always_inline]] static void store(float* p, V v) { __builtin_memcpy(p, &v, sizeof v); }
  static void finish() {}
};

#if defined(__x86_64__)
struct Past {
  static constexpr int64_t kAlignment = kVectorBytes;
  [[gnu::always_inline]] static void store(float* p, V v) {
#if defined(__AVX512F__)
    _mm512_stream_ps(p, (__m512)v);
#elif defined(__AVX2__)
    _mm256_stream_ps(p, (__m256)v);
#else
    _mm_stream_ps(p, (__m128)v);
#endif
  }
  // Such stores are ordered after nothing: a thread that waits for us could miss them.
  static void finish() { _mm_sfence(); }
};
#else
using Past = Plain;
#endif

// d[i] = of(i) with whole vectors where `at(i)` gives one, from where d is aligned.
template <class Store, class Vectors, class Singles>
[[gnu::always_inline]] inline void fill(int64_t n, float* d, Vectors at, Singles of) {
  int64_t i = 0;
  for (; i < n && reinterpret_cast<uintptr_t>(d + i) % uintptr_t(Store::kAlignment) != 0; ++i) {
    d[i] = of(i);
  }
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
#pragma GCC unroll 4
    for (int64_t u = 0; u < 4; ++u) Store::store(d + i + u * kLanes, at(i + u * kLanes));
  }
  for (; i < n; ++i) d[i] = of(i);
  Store::finish();
}

template <class Store>
void write(int64_t n, float* d) {
  fill<Store>(
      n, d, [](int64_t) { return V{} + 1; }, [](int64_t) { return 1.f; });
}

template <class Store>
void copy(int64_t n, float* d, const float* a) {
  fill<Store>(
      n, d, [=](int64_t i) { return load(a + i); }, [=](int64_t i) { return a[i]; });
}

template <class Store>
void add(int64_t n, float* d, const float* a, const float* b) {
  fill<Store>(
      n, d, [=](int64_t i) { return load(a + i) + load(b + i); },
      [=](int64_t i) { return a[i] + b[i]; });
}

float total(const V* sums, int count) {
  V sum = sums[0];
  for (int i = 1; i < count; ++i) sum += sums[i];
  float result = 0;
  for (int64_t i = 0; i < kLanes; ++i) result += sum[i];
  return result;
}

float read(int64_t n, const float* a) {
  V sums[8] = {};
  int64_t i = 0;
  for (; i + 8 * kLanes <= n; i += 8 * kLanes) {
#pragma GCC unroll 8
    for (int64_t u = 0; u < 8; ++u) sums[u] += load(a + i + u * kLanes);
  }
  float rest = 0;
  for (; i < n; ++i) rest += a[i];
  return total(sums, 8) + rest;
}

float fma(int64_t rounds) {
  // Unknown to the compiler, and such that the sums stay finite.
  volatile float factor = 0.5f, shift = 1.f;
  const V a = V{} + factor, b = V{} + shift;
  V sums[kSums];  // each other numbers: equal ones would be computed once
#pragma GCC unroll 16
  for (int s = 0; s < kSums; ++s) sums[s] = b * float(s);
  for (int64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 16
    for (int s = 0; s < kSums; ++s) sums[s] = sums[s] * a + b;
  }
  return total(sums, kSums);
}

}  // namespace

extern constinit const PeakLoops TESSERA_JOIN(kPeak_, TESSERA_SIMD_NAME);
constinit const PeakLoops TESSERA_JOIN(kPeak_, TESSERA_SIMD_NAME) = {
    2 * kLanes * kSums, fma,         read,       write<Plain>, copy<Plain>,
    add<Plain>,         write<Past>, copy<Past>, add<Past>};

}  // namespace tessera::cpu
