#include "tessera/lattice/estimate.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace tessera::lattice {

float true_distance(Metric metric, std::span<const float> a, std::span<const float> b) {
  constexpr size_t kChains = 16;
  float sums[kChains] = {}, a2[kChains] = {}, b2[kChains] = {};
  const auto add = [&](size_t i, size_t j) {
    if (metric == Metric::l2) {
      const float difference = a[j] - b[j];
      sums[i] += difference * difference;
      return;
    }
    sums[i] += a[j] * b[j];
    if (metric == Metric::inner_product) return;
    a2[i] += a[j] * a[j];
    b2[i] += b[j] * b[j];
  };
  size_t j = 0;
  for (; j + kChains <= a.size(); j += kChains) {
    for (size_t i = 0; i < kChains; ++i) add(i, j + i);
  }
  for (; j < a.size(); ++j) add(0, j);
  const auto total = [](const float(&s)[kChains]) { return std::accumulate(s, s + kChains, 0.f); };
  if (metric != Metric::cosine) return total(sums);
  const float lengths = std::sqrt(total(a2) * total(b2));
  return lengths > 0 ? total(sums) / lengths : 0;
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
