#include "tessera/lattice/estimate.h"

#include <algorithm>
#include <cmath>

#include "tessera/lattice/nearest_kernels.h"

namespace tessera::lattice {

float true_distance(Metric metric, std::span<const float> a, std::span<const float> b) {
  const DistanceKernel& kernel = distance_kernel();
  const auto dim = int64_t(a.size());
  if (metric == Metric::l2) return kernel.squared_distance(a.data(), b.data(), dim);
  const float product = kernel.inner_product(a.data(), b.data(), dim);
  if (metric == Metric::inner_product) return product;
  const float lengths = std::sqrt(kernel.inner_product(a.data(), a.data(), dim) *
                                  kernel.inner_product(b.data(), b.data(), dim));
  return lengths > 0 ? product / lengths : 0;
}

float code_product(const CodeSpec& spec, std::span<const uint8_t> codes,
                   std::span<const float> query, std::span<const float> diagonal) {
  constexpr size_t kChains = 16;  // sums that a compiler may keep in one register
  float sums[kChains] = {};
  for (size_t j = 0; j < size_t(spec.dim); j += kChains) {
    const float half = float((1 << spec.group_bits[j / kGroup]) - 1) * 0.5f;
    for (size_t i = 0; i < kChains; ++i) {  // padded_dim is a multiple; queries end in zeros
      const float q = diagonal.empty() ? query[j + i] : query[j + i] * diagonal[j + i];
      sums[i] += (float(codes[j + i]) - half) * q;
    }
  }
  float result = 0;
  for (const float s : sums) result += s;
  return result;
}

float estimate_key(Metric metric, float base, CodeFactors factors, float product) {
  if (metric == Metric::l2) return base + (factors.n2 - 2 * factors.g * product);
  return base - factors.g * product;
}

float error_bound(float residual_length, float query_distance, float cosine, int32_t dim) {
  constexpr float kEpsilon = 1.9f;
  const float tangent = std::sqrt(std::max(0.f, 1 - cosine * cosine)) / cosine;
  return 2 * residual_length * query_distance * tangent * kEpsilon /
         std::sqrt(float(std::max(1, dim - 1)));
}

}  // namespace tessera::lattice
