#include "tessera/bench/statistics.h"

#include <algorithm>
#include <cmath>

#include "tessera/base/error.h"

namespace tessera::bench {

double quantile(const std::vector<double>& sorted, double q) {
  TESSERA_ASSERT(!sorted.empty());
  const double place = q * double(sorted.size() - 1);
  const size_t below = size_t(std::floor(place)), above = size_t(std::ceil(place));
  return sorted[below] + (place - double(below)) * (sorted[above] - sorted[below]);
}

Summary summarize(std::vector<double> samples, int64_t batch) {
  std::sort(samples.begin(), samples.end());
  return {quantile(samples, 0.5), quantile(samples, 0.1),  quantile(samples, 0.9),
          samples.at(0),          int64_t(samples.size()), batch};
}

}  // namespace tessera::bench
