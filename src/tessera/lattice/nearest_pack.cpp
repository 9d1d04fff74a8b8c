#include "tessera/lattice/nearest_pack.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "tessera/base/half.h"
#include "tessera/base/thread_pool.h"

namespace tessera::lattice {

namespace {

int64_t round_up(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }

std::vector<float> mean_of(std::span<const float> anchors, int64_t dim) {
  std::vector<double> sums(static_cast<size_t>(dim));
  for (size_t i = 0; i < anchors.size(); ++i) sums[i % size_t(dim)] += double(anchors[i]);
  const double count = double(anchors.size()) / double(dim);
  std::vector<float> mean(sums.size());
  std::ranges::transform(sums, mean.begin(), [&](double sum) { return float(sum / count); });
  return mean;
}

// What one anchor adds to the pack's bounds.
struct Bounds {
  double longest = 0, rounding = 0, largest_start = 0;

  void include(const Bounds& other) {
    longest = std::max(longest, other.longest);
    rounding = std::max(rounding, other.rounding);
    largest_start = std::max(largest_start, other.largest_start);
  }
};

class Packer {
 public:
  Packer(AnchorPack& pack, std::span<const float> anchors, int64_t dim, Metric metric)
      : pack_(pack), anchors_(anchors), dim_(dim), metric_(metric) {}

  Bounds pack(int64_t anchor, std::vector<std::byte>& row) const {
    const float* from = anchors_.data() + anchor * dim_;
    pack_.kernel->prepare(row.data(), from, pack_.centre.data(), dim_, pack_.depth);
    const int64_t columns = pack_.kernel->columns;
    const int64_t panel = anchor / columns, column = anchor % columns;
    std::byte* to = pack_.panels.data() + panel * columns * pack_.row_bytes();
    // A pair of bf16 takes as much room as one f32.
    for (int64_t word = 0; word < pack_.row_bytes() / 4; ++word) {
      std::memcpy(to + (word * columns + column) * 4, row.data() + word * 4, 4);
    }
    return measure(anchor, from, row.data());
  }

 private:
  float stored(const std::byte* row, int64_t p) const {
    if (!pack_.kernel->halves) {
      float value;
      std::memcpy(&value, row + p * 4, sizeof value);
      return value;
    }
    bf16 value;
    std::memcpy(&value.bits, row + p * 2, sizeof value.bits);
    return value;
  }

  // The score of l2 is <x, c> - |c|²/2, where c is what lies in the panel; the start makes up for
  // <c, what was rounded away>, so that only <x - c, what was rounded away> is left as an error.
  Bounds measure(int64_t anchor, const float* from, const std::byte* row) const {
    double squares = 0, lost = 0, along = 0;
    for (int64_t p = 0; p < dim_; ++p) {
      const double exact = double(from[p]) - double(pack_.centre[size_t(p)]);
      const double error = double(stored(row, p)) - exact;
      squares += exact * exact;
      lost += error * error;
      along += exact * error;
    }
    const double start = metric_ == Metric::l2 ? -squares / 2 - along : 0;
    pack_.start.data()[anchor] = float(start);
    return {std::sqrt(squares) * 1.001, std::sqrt(lost) * 1.001, std::abs(start) * 1.001};
  }

  AnchorPack& pack_;
  std::span<const float> anchors_;
  int64_t dim_;
  Metric metric_;
};

}  // namespace

AnchorPack pack_anchors(const NearestKernel& kernel, std::span<const float> anchors, int64_t dim,
                        Metric metric) {
  const int64_t count = int64_t(anchors.size()) / dim;
  const int64_t depth = round_up(dim, kernel.unit);
  const int64_t panels = round_up(count, kernel.columns) / kernel.columns;
  const auto columns = size_t(panels * kernel.columns);
  AlignedArray<std::byte> bytes(columns * size_t(depth) * (kernel.halves ? 2 : 4));
  AlignedArray<float> start(columns);
  std::fill_n(start.data(), columns, -std::numeric_limits<float>::infinity());
  AnchorPack pack = {&kernel, depth, panels, std::move(bytes), std::move(start), {}, 0, 0, 0};
  pack.centre = metric == Metric::l2 ? mean_of(anchors, dim) : std::vector<float>(size_t(dim));
  const Packer packer(pack, anchors, dim, metric);
  std::vector<Bounds> bounds(static_cast<size_t>(panels));
  thread_pool().parallel_for(panels, 1, [&](int64_t begin, int64_t end) {
    std::vector<std::byte> row(static_cast<size_t>(pack.row_bytes()));
    for (int64_t panel = begin; panel < end; ++panel) {
      const int64_t last = std::min((panel + 1) * kernel.columns, count);
      for (int64_t j = panel * kernel.columns; j < last; ++j) {
        bounds[size_t(panel)].include(packer.pack(j, row));
      }
    }
  });
  Bounds all;
  for (const Bounds& b : bounds) all.include(b);
  pack.longest = all.longest;
  pack.rounding = all.rounding;
  pack.largest_start = all.largest_start;
  return pack;
}

}  // namespace tessera::lattice
