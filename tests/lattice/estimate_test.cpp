#include "tessera/lattice/estimate.h"

#include "code_fixture.h"
#include "tessera/lattice/quantize.h"

namespace tessera::lattice {
namespace {

// x and q around the anchor c, and x's code.
struct Pair {
  std::vector<float> x, q, c;
  std::vector<uint8_t> codes;
  Encoded encoded;
  CodeFactors factors;
};

std::vector<float> turned_difference(const Coder& coder, std::span<const float> a,
                                     std::span<const float> b) {
  std::vector<float> result = padded_row(coder.spec(), a);
  for (size_t j = 0; j < b.size(); ++j) result[j] -= b[j];
  coder.transform(result.data());
  return result;
}

Pair make_pair(const Coder& coder, uint64_t seed, std::span<const float> diagonal = {}) {
  const int32_t dim = coder.spec().dim;
  Pair p = {gaussians(3 * seed, dim),
            gaussians(3 * seed + 1, dim),
            gaussians(3 * seed + 2, dim),
            std::vector<uint8_t>(size_t(coder.spec().padded_dim)),
            {},
            {}};
  p.encoded = coder.encode(turned_difference(coder, p.x, p.c), diagonal, p.codes);
  p.factors = round_factors(coder.spec(), {p.encoded.n2, p.encoded.g});
  return p;
}

float estimate(const Coder& coder, Metric metric, const Pair& p, std::span<const float> q,
               std::span<const float> diagonal = {}) {
  const bool l2 = metric == Metric::l2;
  const std::vector<float> zero(p.c.size(), 0.f);
  const std::vector<float> query = turned_difference(coder, q, l2 ? p.c : zero);
  const float base =
      l2 ? true_distance(Metric::l2, q, p.c) : -true_distance(Metric::inner_product, q, p.c);
  const float product = code_product(coder.spec(), p.codes, query, diagonal);
  return key_of(metric, estimate_key(metric, base, p.factors, product));
}

// Each pair has a rotation of its own: the estimate is unbiased over rotations.
TEST(Estimate, UnbiasedAndWithinItsBoundOver10000Pairs) {
  for (const int32_t bits : {1, 2, 4}) {
    constexpr int kPairs = 10000, kDim = 64;
    double sum = 0, squares = 0;
    int outside = 0, beyond = 0;
    for (uint64_t i = 0; i < kPairs; ++i) {
      const Coder coder(rotation_spec(kDim, bits, i, 2 * kDim));
      const Pair p = make_pair(coder, i);
      const float distance = std::sqrt(true_distance(Metric::l2, p.q, p.c));
      const float length = std::sqrt(p.encoded.n2);
      const double error =
          estimate(coder, Metric::l2, p, p.q) - true_distance(Metric::l2, p.q, p.x);
      sum += error / (length * distance);
      squares += error * error / (double(length) * length * distance * distance);
      // Only the part of q - c across x - c is estimated: with it the bound is tight.
      const float cosine =
          (distance * distance + p.encoded.n2 - true_distance(Metric::l2, p.q, p.x)) /
          (2 * distance * length);
      const float across = distance * std::sqrt(1 - cosine * cosine);
      beyond += std::fabs(error) > error_bound(length, across, p.encoded.cosine, kDim) ? 1 : 0;
      outside += std::fabs(error) > error_bound(length, distance, p.encoded.cosine, kDim) ? 1 : 0;
    }
    const double mean = sum / kPairs, deviation = std::sqrt(squares / kPairs);
    EXPECT_LT(std::fabs(mean), 4 * deviation / std::sqrt(double(kPairs))) << bits << " bits";
    // 1.9 deviations leave 5.7 % of a Gaussian outside.
    EXPECT_NEAR(beyond, kPairs * 0.057, kPairs * 0.01) << bits << " bits";
    EXPECT_LT(outside, beyond) << bits << " bits";
  }
}

TEST(Estimate, InnerProductIsUnbiased) {
  constexpr int kPairs = 10000, kDim = 64;
  double sum = 0, squares = 0;
  for (uint64_t i = 0; i < kPairs; ++i) {
    const Coder coder(rotation_spec(kDim, 2, i, 2 * kDim));
    const Pair p = make_pair(coder, i);
    const double error = estimate(coder, Metric::inner_product, p, p.q) -
                         true_distance(Metric::inner_product, p.q, p.x);
    sum += error;
    squares += error * error;
  }
  EXPECT_LT(std::fabs(sum / kPairs), 4 * std::sqrt(squares / kPairs) / 100);
  EXPECT_LT(std::sqrt(squares / kPairs), 5);
}

TEST(Estimate, ExactAtTheVectorItself) {
  for (int32_t bits = 1; bits <= 8; ++bits) {
    for (const int32_t dim : {3, 100, 128}) {
      const Coder coder(rotation_spec(dim, bits, 7, 2 * dim));
      const std::vector<float> diagonal =
          padded_row(coder.spec(), std::vector<float>(size_t(dim), 0.7f));
      for (const auto& d : {std::span<const float>(), std::span(diagonal)}) {
        const Pair p = make_pair(coder, uint64_t(bits), d);
        // Only the rounding of the two factors remains: 2^-11 of n2 and of 2 n2.
        EXPECT_NEAR(estimate(coder, Metric::l2, p, p.x, d), 0, p.encoded.n2 * 3 * 0x1p-11f)
            << bits << " bits, dim " << dim;
      }
    }
  }
}

TEST(Estimate, TrueDistances) {
  const std::vector<float> a = {3, 4}, b = {4, 3};
  EXPECT_FLOAT_EQ(true_distance(Metric::l2, a, b), 2);
  EXPECT_FLOAT_EQ(true_distance(Metric::inner_product, a, b), 24);
  EXPECT_FLOAT_EQ(true_distance(Metric::cosine, a, b), 24.f / 25);
  EXPECT_EQ(true_distance(Metric::cosine, a, std::vector<float>{0, 0}), 0);
}

}  // namespace
}  // namespace tessera::lattice
