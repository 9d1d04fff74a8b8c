// Compiled once per instruction set, without contraction into fused multiply-adds. No symbol but
// the table may leave this file.
#include "tessera/lattice/nearest_kernels.h"

#define TESSERA_INLINE [[gnu::always_inline]] inline
#define TESSERA_JOIN_(a, b) a##b
#define TESSERA_JOIN(a, b) TESSERA_JOIN_(a, b)

namespace tessera::lattice {

namespace {

constexpr int kLanes = 16;
typedef float Lanes __attribute__((vector_size(kLanes * sizeof(float))));

TESSERA_INLINE void load(Lanes& to, const float* from) { __builtin_memcpy(&to, from, sizeof to); }

TESSERA_INLINE void load_part(Lanes& to, const float* from, int64_t count) {
  float lanes[kLanes] = {};
  for (int64_t i = 0; i < count; ++i) lanes[i] = from[i];
  load(to, lanes);
}

TESSERA_INLINE void add_square(Lanes& sum, const Lanes& a, const Lanes& b) {
  const Lanes difference = a - b;
  sum += difference * difference;
}
TESSERA_INLINE void add_product(Lanes& sum, const Lanes& a, const Lanes& b) { sum += a * b; }

template <void (*add)(Lanes&, const Lanes&, const Lanes&)>
float sum_over(const float* a, const float* b, int64_t dim) {
  Lanes sum = {}, x, y;
  int64_t p = 0;
  for (; p + kLanes <= dim; p += kLanes) {
    load(x, a + p);
    load(y, b + p);
    add(sum, x, y);
  }
  if (p < dim) {
    load_part(x, a + p, dim - p);
    load_part(y, b + p, dim - p);
    add(sum, x, y);
  }
  float lanes[kLanes];
  __builtin_memcpy(lanes, &sum, sizeof lanes);
  for (int width = kLanes / 2; width > 0; width /= 2) {
    for (int l = 0; l < width; ++l) lanes[l] += lanes[l + width];
  }
  return lanes[0];
}

}  // namespace

extern constinit const DistanceKernel TESSERA_JOIN(kDistance_, TESSERA_SIMD_NAME);
constinit const DistanceKernel TESSERA_JOIN(kDistance_, TESSERA_SIMD_NAME) = {
    sum_over<add_square>, sum_over<add_product>};

}  // namespace tessera::lattice
