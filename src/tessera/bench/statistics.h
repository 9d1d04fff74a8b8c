// Times of repeated runs in few numbers.
#pragma once

#include <cstdint>
#include <vector>

namespace tessera::bench {

inline constexpr double kNoisy = 0.05;  // a spread above this is marked

struct Summary {
  double median = 0, p10 = 0, p90 = 0, least = 0;  // seconds of one run
  int64_t samples = 0;                             // that were timed
  int64_t batch = 1;                               // runs of one sample

  double spread() const { return median > 0 ? (p90 - p10) / median : 0; }
  bool is_noisy() const { return spread() > kNoisy; }
};

// The value below which a share `q` of the samples lies, by linear interpolation between the two
// nearest. REQUIRES samples, sorted.
double quantile(const std::vector<double>& sorted, double q);

// REQUIRES at least one sample.
Summary summarize(std::vector<double> samples, int64_t batch = 1);

}  // namespace tessera::bench
