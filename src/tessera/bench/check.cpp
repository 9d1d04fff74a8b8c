#include "tessera/bench/check.h"

#include <algorithm>
#include <limits>

namespace tessera::bench {

namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

double error_of(const std::vector<float>& actual, const Expected& expected) {
  const size_t count = expected.values.size();
  const bool is_sampled = !expected.positions.empty();
  if (!is_sampled && actual.size() != count) return kInfinite;
  Array left{{expected.dtype, {int64_t(count)}}, {}, {}}, right = left;
  for (size_t i = 0; i < count; ++i) {
    const size_t place = is_sampled ? size_t(expected.positions[i]) : i;
    if (place >= actual.size()) return kInfinite;
    left.real.push_back(double(actual[place]));
  }
  right.real = expected.values;
  return ulp_errors(left, right, expected.unit).largest;
}

// How near to failing; what may not differ at all counts for more than anything else.
double severity(double error, double tolerance) {
  if (error == 0) return 0;
  return tolerance > 0 ? error / tolerance : kInfinite;
}

}  // namespace

Check compare(std::string column, const Outputs& actual, const std::vector<Expected>& expected) {
  Check worst{std::move(column)};
  if (actual.size() != expected.size()) {
    worst.error = kInfinite;
    return worst;
  }
  double greatest = -1;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double error = error_of(actual[i], expected[i]);
    worst.elements += int64_t(expected[i].values.size());
    if (severity(error, expected[i].tolerance) <= greatest) continue;
    greatest = severity(error, expected[i].tolerance);
    worst.error = error;
    worst.tolerance = expected[i].tolerance;
  }
  return worst;
}

std::vector<int64_t> sample_positions(int64_t n, int64_t most) {
  // Odd, so that it goes through all columns of matrices whose width is a power of two.
  const int64_t step = std::max<int64_t>(1, n / most) | 1;
  std::vector<int64_t> positions;
  for (int64_t at = 0; at < n; at += n <= most ? 1 : step) positions.push_back(at);
  return positions;
}

double tolerance_of(Op op, double terms) { return info(op).ulp * std::sqrt(terms); }

}  // namespace tessera::bench
