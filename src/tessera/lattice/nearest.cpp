#include "tessera/lattice/nearest.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/base/thread_pool.h"
#include "tessera/lattice/nearest_pack.h"

namespace tessera::lattice {

namespace {

constexpr int64_t kBlockRows = 96;  // a multiple of every kernel's rows
constexpr double kUnit = 0x1p-24;   // relative error of rounding to f32

// Larger scores might overflow, and then decide nothing.
constexpr double kLargestScore = 1e37;

struct Candidate {
  float value;
  int32_t anchor;
};

struct FewScratch {
  std::vector<float> scores;
  std::vector<int32_t> reached;
  std::vector<uint64_t> found;  // sort_key, ascending
};

// Numbers that are in the order of the values, then of the anchors. REQUIRES: no value is -0.
uint64_t sort_key(float value, int32_t anchor) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t ordered = bits >> 31 != 0 ? ~bits : bits | 0x80000000u;
  return uint64_t(ordered) << 32 | uint32_t(anchor);
}

Candidate candidate_of(uint64_t key) {
  const auto ordered = uint32_t(key >> 32);
  const uint32_t bits = ordered >> 31 != 0 ? ordered & 0x7fffffffu : ~ordered;
  return {std::bit_cast<float>(bits), int32_t(uint32_t(key))};
}

}  // namespace

struct NearestAnchors::State {
  int64_t count, dim;
  Metric metric;
  std::vector<float> anchors;
  std::vector<AnchorPack> packs;  // the one in use, and after bf16 one in f32 for undecided points

  float value(const float* point, int32_t anchor) const {
    const DistanceKernel& kernel = distance_kernel();
    const float* at = anchors.data() + int64_t(anchor) * dim;
    return metric == Metric::l2 ? kernel.squared_distance(point, at, dim)
                                : kernel.inner_product(point, at, dim);
  }

  bool better(const Candidate& a, const Candidate& b) const {
    if (a.value != b.value) return metric == Metric::l2 ? a.value < b.value : a.value > b.value;
    return a.anchor < b.anchor;
  }

  // How far below the score of an anchor of this value (or better) that of the true winner can be.
  // docs/lattice_anchors.md derives it.
  float margin(const AnchorPack& pack, const PointNorms& norms, float worst_value) const {
    const double length = double(norms.length) * 1.001;
    const double lost = double(norms.rounding) * 1.001 + kUnit * length;
    const double stored = pack.longest + pack.rounding;
    const double steps = 2 * double(pack.depth) + 8;
    const double reach = pack.largest_start + (length + lost) * stored;  // of a score on its way
    if (!(reach < kLargestScore)) return std::numeric_limits<float>::infinity();
    const double summing = steps * kUnit * reach;
    const double comparing = (double(dim) / 8 + 16) * kUnit;
    if (metric != Metric::l2) {
      const double product = length * pack.rounding + lost * stored;
      return float(2 * (product + summing) + comparing * length * pack.longest);
    }
    const double distance = std::sqrt(double(worst_value)) * 1.001;
    const double rounding = distance * (lost + pack.rounding) + lost * pack.rounding;
    return float(2 * (rounding + summing) + comparing * distance * distance);
  }

  Candidate search_all(const float* point) const {
    Candidate best = {value(point, 0), 0};
    for (int32_t j = 1; j < int32_t(count); ++j) {
      const Candidate next = {value(point, j), j};
      if (better(next, best)) best = next;
    }
    return best;
  }

  // False: more than one anchor of a lane may be the nearest, and the scan kept only the first.
  bool settle(const AnchorPack& pack, const PointNorms& norms, const float* point,
              const LaneBest& lanes, Candidate& best) const {
    const int lane_count = pack.kernel->lanes;
    const float* top = std::max_element(lanes.best, lanes.best + lane_count);
    const int winner = int(top - lanes.best);
    best.anchor = lanes.anchor[winner];
    best.value = value(point, best.anchor);
    const float threshold = *top - margin(pack, norms, best.value);
    // Written so that a threshold that is no number settles nothing.
    for (int l = 0; l < lane_count; ++l) {
      if (!(lanes.second[l] < threshold)) return false;
    }
    for (int l = 0; l < lane_count; ++l) {
      if (l == winner || lanes.best[l] < threshold) continue;
      const Candidate next = {value(point, lanes.anchor[l]), lanes.anchor[l]};
      if (better(next, best)) best = next;
    }
    return true;
  }

  void find_part(std::span<const float> points, int64_t begin, int64_t end,
                 std::span<int32_t> cells, std::span<float> values) const;
  void find_few_part(std::span<const float> points, int64_t begin, int64_t end, int64_t few,
                     std::span<int32_t> cells, std::span<float> values) const;
  void pick_few(const PointNorms& norms, const float* point, std::span<const float> scores,
                int64_t few, FewScratch& scratch) const;
};

namespace {

// The points of a block as a kernel wants them, with room for its results.
class PreparedBlock {
 public:
  PreparedBlock(const AnchorPack& pack, int64_t dim)
      : pack_(pack), dim_(dim), bytes_(size_t(kBlockRows * pack.row_bytes())), norms_(kBlockRows) {}

  // Rows past the last point are copies of it.
  ScoreBlock prepare(std::span<const float* const> rows, const float* centre) {
    const int64_t count = int64_t(rows.size());
    const int64_t tile = pack_.kernel->rows;
    const int64_t padded = (count + tile - 1) / tile * tile;
    for (int64_t i = 0; i < padded; ++i) {
      norms_[size_t(i)] =
          pack_.kernel->prepare(bytes_.data() + i * pack_.row_bytes(),
                                rows[size_t(std::min(i, count - 1))], centre, dim_, pack_.depth);
    }
    return pack_.block(bytes_.data(), padded);
  }

  const PointNorms& norms(int64_t i) const { return norms_[size_t(i)]; }

 private:
  const AnchorPack& pack_;
  int64_t dim_;
  AlignedArray<std::byte> bytes_;
  std::vector<PointNorms> norms_;
};

// Scans blocks of points with one pack, and says which it could not settle.
class Scanner {
 public:
  Scanner(const AnchorPack& pack, int64_t dim)
      : block_(pack, dim),
        pack_(pack),
        best_(size_t(kBlockRows) * kMaxLanes),
        second_(size_t(kBlockRows) * kMaxLanes),
        anchor_(size_t(kBlockRows) * kMaxLanes) {}

  template <class Settle>
  void scan(std::span<const float* const> rows, const Settle& settle) {
    const ScoreBlock block = block_.prepare(rows, pack_.centre.data());
    pack_.kernel->scan(block, {best_.data(), second_.data(), anchor_.data()});
    for (size_t i = 0; i < rows.size(); ++i) {
      const size_t at = i * size_t(pack_.kernel->lanes);
      settle(i, block_.norms(int64_t(i)),
             LaneBest{best_.data() + at, second_.data() + at, anchor_.data() + at});
    }
  }

 private:
  PreparedBlock block_;
  const AnchorPack& pack_;
  AlignedArray<float> best_, second_;
  AlignedArray<int32_t> anchor_;
};

}  // namespace

// Points that the first pack cannot settle go to the next one in blocks of their own; those that
// the last cannot settle are compared with every anchor.
void NearestAnchors::State::find_part(std::span<const float> points, int64_t begin, int64_t end,
                                      std::span<int32_t> cells, std::span<float> values) const {
  std::vector<int64_t> left;
  for (int64_t i = begin; i < end; ++i) left.push_back(i);
  for (const AnchorPack& pack : packs) {
    if (left.empty()) break;
    Scanner scanner(pack, dim);
    std::vector<int64_t> undecided;
    std::vector<const float*> rows;
    for (size_t first = 0; first < left.size(); first += size_t(kBlockRows)) {
      const std::span<const int64_t> numbers =
          std::span(left).subspan(first, std::min(size_t(kBlockRows), left.size() - first));
      rows.clear();
      for (const int64_t i : numbers) rows.push_back(points.data() + i * dim);
      scanner.scan(rows, [&](size_t i, const PointNorms& norms, const LaneBest& lanes) {
        Candidate best;
        if (!settle(pack, norms, rows[i], lanes, best)) return undecided.push_back(numbers[i]);
        cells[size_t(numbers[i])] = best.anchor;
        values[size_t(numbers[i])] = best.value;
      });
      // A pack that settles less than half is given up for this part: the next one is as fast.
      const size_t done = first + numbers.size();
      if (&pack != &packs.back() && 2 * undecided.size() > done) {
        undecided.insert(undecided.end(), left.begin() + int64_t(done), left.end());
        break;
      }
    }
    left = std::move(undecided);
  }
  for (const int64_t i : left) {
    const Candidate best = search_all(points.data() + i * dim);
    cells[size_t(i)] = best.anchor;
    values[size_t(i)] = best.value;
  }
}

namespace {

// A score that at least `few` of them reach: of the maxima of groups, the one of that rank.
float reached_by(std::span<const float> scores, int64_t few, std::vector<float>& scratch) {
  const size_t groups = std::min(scores.size(), size_t(4 * few));
  scratch.assign(scores.begin(), scores.begin() + int64_t(groups));
  for (size_t begin = groups; begin < scores.size(); begin += groups) {
    const size_t end = std::min(groups, scores.size() - begin);
    const float* next = scores.data() + begin;
    float* largest = scratch.data();
    for (size_t g = 0; g < end; ++g) largest[g] = next[g] > largest[g] ? next[g] : largest[g];
  }
  std::nth_element(scratch.begin(), scratch.begin() + (few - 1), scratch.end(), std::greater<>());
  return scratch[size_t(few - 1)];
}

// Without branches: which scores are reached follows no pattern.
void collect(std::span<const float> scores, float threshold, bool all,
             std::vector<int32_t>& reached) {
  reached.resize(scores.size());
  size_t found = 0;
  for (size_t j = 0; j < scores.size(); ++j) {
    reached[found] = int32_t(j);
    found += size_t(all || scores[j] >= threshold);
  }
  reached.resize(found);
}

}  // namespace

// `low` is reached by at least `few` anchors. Were `worst` the largest distance among them, no
// anchor that belongs to the nearest few could have a score below low - margin(worst). So all
// scores above that are looked at; `worst` is guessed from the scores first, and made good where it
// was too small.
void NearestAnchors::State::pick_few(const PointNorms& norms, const float* point,
                                     std::span<const float> scores, int64_t few,
                                     FewScratch& scratch) const {
  const AnchorPack& pack = packs.front();
  float low = 0, worst = 0, threshold = -std::numeric_limits<float>::infinity();
  const bool numbers = !std::isinf(margin(pack, norms, 0));  // else scores may overflow
  if (numbers) {
    low = reached_by(scores, few, scratch.scores);
    worst = 1.1f * std::max(0.0f, norms.length * norms.length - 2 * low);
    threshold = low - margin(pack, norms, worst);
  }
  for (;;) {
    collect(scores, threshold, !numbers, scratch.reached);
    scratch.found.clear();
    float farthest = 0;
    for (const int32_t j : scratch.reached) {
      const float found = value(point, j);
      scratch.found.push_back(sort_key(metric == Metric::l2 ? found : 0 - found, j));
      if (scores[size_t(j)] >= low) farthest = std::max(farthest, found);
    }
    if (!numbers || metric != Metric::l2 || farthest <= worst) break;
    worst = farthest;
    threshold = low - margin(pack, norms, worst);
  }
  std::ranges::sort(scratch.found);
}

void NearestAnchors::State::find_few_part(std::span<const float> points, int64_t begin, int64_t end,
                                          int64_t few, std::span<int32_t> cells,
                                          std::span<float> values) const {
  const AnchorPack& pack = packs.front();
  const int64_t tile = pack.kernel->rows, step = pack.panel_count * pack.kernel->columns;
  PreparedBlock prepared(pack, dim);
  std::vector<float> scores(size_t(tile * step));
  std::vector<const float*> rows;
  FewScratch scratch;
  for (int64_t first = begin; first < end; first += tile) {
    rows.clear();
    for (int64_t i = first; i < std::min(first + tile, end); ++i) {
      rows.push_back(points.data() + i * dim);
    }
    pack.kernel->scores(prepared.prepare(rows, pack.centre.data()), scores.data());
    for (size_t i = 0; i < rows.size(); ++i) {
      const auto row = std::span(scores).subspan(i * size_t(step), size_t(count));
      pick_few(prepared.norms(int64_t(i)), rows[i], row, few, scratch);
      for (int64_t k = 0; k < few; ++k) {
        const size_t at = size_t((first + int64_t(i)) * few + k);
        const Candidate found = candidate_of(scratch.found[size_t(k)]);
        cells[at] = found.anchor;
        values[at] = metric == Metric::l2 ? found.value : 0 - found.value;
      }
    }
  }
}

NearestAnchors::NearestAnchors(std::span<const float> anchors, int64_t dim, Metric metric,
                               const NearestKernel* kernel) {
  TESSERA_ASSERT(dim > 0 && !anchors.empty() && int64_t(anchors.size()) % dim == 0);
  const int64_t count = int64_t(anchors.size()) / dim;
  TESSERA_ASSERT(count <= std::numeric_limits<int32_t>::max() - 64);
  const auto kernels = available_nearest_kernels();
  const NearestKernel* exact = kernels.front();
  for (const NearestKernel* k : kernels) {
    if (!k->halves) exact = k;
  }
  if (kernel == nullptr) kernel = kernels.back();
  // The margin of bf16 is proportional to distances only for l2; to lengths for inner products.
  if (metric != Metric::l2 && kernel->halves) kernel = exact;
  auto state = std::make_unique<State>();
  state->count = count;
  state->dim = dim;
  state->metric = metric;
  state->anchors.assign(anchors.begin(), anchors.end());
  state->packs.push_back(pack_anchors(*kernel, anchors, dim, metric));
  if (kernel->halves) state->packs.push_back(pack_anchors(*exact, anchors, dim, metric));
  state_ = std::move(state);
}

NearestAnchors::~NearestAnchors() = default;
NearestAnchors::NearestAnchors(NearestAnchors&&) noexcept = default;
NearestAnchors& NearestAnchors::operator=(NearestAnchors&&) noexcept = default;

int64_t NearestAnchors::count() const { return state_->count; }
int64_t NearestAnchors::dim() const { return state_->dim; }

void NearestAnchors::find(std::span<const float> points, std::span<int32_t> cells,
                          std::span<float> values) const {
  const int64_t n = int64_t(cells.size());
  TESSERA_ASSERT(int64_t(points.size()) == n * dim() && values.size() == cells.size());
  // A part's undecided points share blocks: the larger the parts, the fuller those are.
  const int64_t blocks = std::clamp<int64_t>(n / (32 * kBlockRows), 1, 16);
  thread_pool().parallel_for(n, blocks * kBlockRows, [&](int64_t begin, int64_t end) {
    state_->find_part(points, begin, end, cells, values);
  });
}

void NearestAnchors::find_few(std::span<const float> points, int64_t few, std::span<int32_t> cells,
                              std::span<float> values) const {
  if (few < 1 || few > count()) {
    fail("nearest: expected 1 to ", count(), " anchors to find, got ", few);
  }
  const int64_t n = int64_t(points.size()) / dim();
  TESSERA_ASSERT(int64_t(cells.size()) == n * few && values.size() == cells.size());
  thread_pool().parallel_for(n, state_->packs.front().kernel->rows,
                             [&](int64_t begin, int64_t end) {
                               state_->find_few_part(points, begin, end, few, cells, values);
                             });
}

}  // namespace tessera::lattice
