#include "tessera/lattice/points.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>

#include "tessera/base/error.h"
#include "tessera/base/thread_pool.h"
#include "tessera/lattice/draws.h"

namespace tessera::lattice {

namespace {

constexpr int64_t kGrain = 1 << 15;  // numbers that are worth a task

// Divided by its largest number first, so that no square overflows or vanishes. False: all zeros.
bool scale_to_unit(float* row, int64_t dim) {
  float largest = 0;
  for (int64_t p = 0; p < dim; ++p) largest = std::max(largest, std::abs(row[p]));
  if (largest == 0) return false;
  double squares = 0;
  for (int64_t p = 0; p < dim; ++p) {
    const double x = double(row[p]) / double(largest);
    squares += x * x;
  }
  const double scale = 1 / (double(largest) * std::sqrt(squares));
  for (int64_t p = 0; p < dim; ++p) row[p] = float(double(row[p]) * scale);
  return true;
}

// The first row that has no direction, or the number of rows.
int64_t scale_rows(std::span<float> rows, int64_t dim) {
  const int64_t n = int64_t(rows.size()) / dim;
  std::atomic<int64_t> first_bad = n;
  thread_pool().parallel_for(n, std::max<int64_t>(1, kGrain / dim),
                             [&](int64_t begin, int64_t end) {
                               for (int64_t i = begin; i < end; ++i) {
                                 if (scale_to_unit(rows.data() + i * dim, dim)) continue;
                                 int64_t known = first_bad;
                                 while (i < known && !first_bad.compare_exchange_weak(known, i)) {
                                 }
                                 return;
                               }
                             });
  return first_bad;
}

[[noreturn]] void refuse_zero_row(int64_t row) {
  fail("points: expected vectors with a direction for cosine, got zeros in row ", row);
}

}  // namespace

void prepare_points(Metric metric, std::span<float> rows, int64_t dim, int64_t first_row) {
  if (metric != Metric::cosine) return;
  const int64_t bad = scale_rows(rows, dim);
  if (bad < int64_t(rows.size()) / dim) refuse_zero_row(first_row + bad);
}

std::vector<int64_t> sample_rows(int64_t n, int64_t count, uint64_t seed) {
  TESSERA_ASSERT(count >= 1 && count <= n);
  Draws draws(seed, Draws::Purpose::sample);
  std::vector<int64_t> rows(static_cast<size_t>(count));
  const int64_t whole = n / count, longer = n % count;
  int64_t begin = 0;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t length = whole + (i < longer ? 1 : 0);
    rows[size_t(i)] = begin + draws.below(length);
    begin += length;
  }
  return rows;
}

std::vector<float> read_points(const VectorFile& file, Metric metric,
                               std::span<const int64_t> numbers) {
  std::vector<float> points(numbers.size() * size_t(file.dim()));
  file.read(numbers, points.data());
  if (metric != Metric::cosine) return points;
  const int64_t bad = scale_rows(points, file.dim());
  if (bad < int64_t(numbers.size())) refuse_zero_row(numbers[size_t(bad)]);
  return points;
}

void for_each_chunk(const VectorFile& file, Metric metric, int64_t memory,
                    const std::function<void(int64_t, std::span<const float>)>& body) {
  const int64_t row_bytes = file.dim() * int64_t(sizeof(float));
  const int64_t most = std::clamp<int64_t>(memory / row_bytes, 1, file.rows());
  std::vector<float> rows(static_cast<size_t>(most * file.dim()));
  for (int64_t begin = 0; begin < file.rows(); begin += most) {
    const int64_t end = std::min(begin + most, file.rows());
    const auto chunk = std::span(rows).first(size_t((end - begin) * file.dim()));
    file.read(begin, end, chunk.data());
    prepare_points(metric, chunk, file.dim(), begin);
    body(begin, chunk);
  }
}

}  // namespace tessera::lattice
