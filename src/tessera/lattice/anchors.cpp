#include "tessera/lattice/anchors.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>

#include "tessera/base/error.h"
#include "tessera/lattice/points.h"
#include "tessera/lattice/seeding.h"
#include "tessera/lattice/trainer.h"

namespace tessera::lattice {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr float kLargestNumber = 1e15f;  // sums of squares of so large numbers stay within f32

struct Range {
  std::string_view option;
  double value, low, high;
  bool low_excluded = false;
};

// Whole numbers with all their digits.
std::string text(double value) {
  const bool whole = std::abs(value) < 0x1p53 && value == std::floor(value);
  return whole ? cat(int64_t(value)) : cat(value);
}

void check_ranges(const AnchorOptions& o) {
  const Range ranges[] = {
      {"anchors", double(o.anchors), 1, 1 << 24},
      {"iterations", double(o.iterations), 0, 1'000'000},
      {"tolerance", o.tolerance, 0, 1},
      {"seeding_points", double(o.seeding_points), 1, kInfinity},
      {"temperature", o.temperature, 0, kInfinity, true},
      {"cooling_rate", o.cooling_rate, 0, 1},
      {"learning_rate", o.learning_rate, 0, 2, true},
      {"largest_step", o.largest_step, 0, kInfinity, true},
      {"momentum", o.momentum, 0, 0.99},
      {"trim", o.trim, 0, 0.49},
      {"huber", o.huber, 0, kInfinity, true},
      {"adjust_every", double(o.adjust_every), 0, kInfinity},
      {"merge_closeness", o.merge_closeness, 0, 1},
      {"fewest", double(o.fewest), 1, double(o.anchors)},
      {"most", double(o.most), double(o.anchors), 1 << 24},
      {"batch", double(o.batch), 1, std::numeric_limits<int32_t>::max()},
  };
  for (const Range& r : ranges) {
    // Written so that a value that is no number is refused.
    const bool inside = r.value <= r.high && (r.low_excluded ? r.value > r.low : r.value >= r.low);
    if (inside) continue;
    fail("anchors: expected ", r.option, r.low_excluded ? " above " : " from ", text(r.low), " to ",
         text(r.high), ", got ", text(r.value));
  }
}

AnchorOptions checked(AnchorOptions options) {
  if (options.fewest == 0) options.fewest = options.anchors;
  if (options.most == 0) options.most = options.anchors;
  check_ranges(options);
  return options;
}

void check_points(const Points& points, const AnchorOptions& options) {
  if (points.count() < options.most) {
    fail("anchors: expected at least one point for each of ", options.most, " anchors, got ",
         points.count(), " points");
  }
  const auto bad =
      std::ranges::find_if(points.data, [](float x) { return !(std::abs(x) <= kLargestNumber); });
  if (bad == points.data.end()) return;
  fail("anchors: expected numbers of at most ", kLargestNumber, " in size, got ", *bad, " in row ",
       (bad - points.data.begin()) / points.dim);
}

std::vector<float> gather(const Points& points, std::span<const int64_t> rows) {
  std::vector<float> result(rows.size() * size_t(points.dim));
  for (size_t i = 0; i < rows.size(); ++i) {
    std::copy_n(points.row(rows[i]), points.dim, result.begin() + std::ptrdiff_t(i) * points.dim);
  }
  return result;
}

std::vector<float> seeds(const Points& points, const AnchorOptions& options) {
  const auto choose = options.seeding == Seeding::plus_plus ? plus_plus : farthest_first;
  const double wanted = double(options.seeding_points) * double(options.anchors);
  if (wanted >= double(points.count())) {
    return gather(points, choose(points.data, points.dim, options.anchors, options.seed));
  }
  const std::vector<int64_t> rows = sample_rows(points.count(), int64_t(wanted), options.seed);
  const std::vector<float> sample = gather(points, rows);
  const Points few = {sample, points.dim};
  return gather(few, choose(sample, points.dim, options.anchors, options.seed));
}

}  // namespace

TrainedAnchors train_anchors(std::span<const float> points, int64_t dim,
                             const AnchorOptions& unchecked, const TrainingCallback& callback) {
  TESSERA_ASSERT(dim > 0 && int64_t(points.size()) % dim == 0);
  const AnchorOptions options = checked(unchecked);
  const Points all = {points, dim};
  check_points(all, options);
  Stopwatch clock;
  TrainedAnchors result = {dim, seeds(all, options), 0, false, 0, 0};
  result.seeding_seconds = clock.lap();
  switch (options.training) {
    case Training::anneal: train_anneal(all, options, callback, result); break;
    case Training::lloyd: train_lloyd(all, options, callback, result); break;
    case Training::mini_batch: train_mini_batch(all, options, callback, result); break;
  }
  return result;
}

TrainedAnchors train_anchors(const VectorFile& file, Metric metric, const AnchorOptions& unchecked,
                             int64_t memory, const TrainingCallback& callback) {
  const AnchorOptions options = checked(unchecked);
  // A point, and its part of Assignment, of CellOrder and of the assignment before.
  const int64_t point_bytes = file.dim() * int64_t(sizeof(float)) + 24;
  const int64_t room = memory / point_bytes;
  if (file.rows() >= options.most && room < options.most) {
    fail("anchors: expected memory for one point of each of ", options.most, " anchors (",
         options.most * point_bytes, " bytes), got ", memory);
  }
  const int64_t count = std::min(file.rows(), std::max<int64_t>(room, 1));
  const std::vector<float> points =
      read_points(file, metric, sample_rows(file.rows(), count, options.seed));
  return train_anchors(points, file.dim(), options, callback);
}

}  // namespace tessera::lattice
