#include "tessera/lattice/build_index.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tessera/base/half.h"
#include "tessera/base/thread_pool.h"
#include "tessera/lattice/index_writer.h"
#include "tessera/lattice/lists.h"
#include "tessera/lattice/nearest.h"
#include "tessera/lattice/points.h"
#include "tessera/lattice/trainer.h"
#include "tessera/lattice/transform.h"
#include "tessera/lattice/vector_index.h"

namespace tessera::lattice {

namespace {

constexpr int64_t kSamplePoints = 50'000;  // that units and transforms are chosen on
constexpr int64_t kHeldOut = 200;

struct Codes {
  CodeSpec spec;
  std::vector<float> diagonals;  // (cells, dim) or empty
  double coding_gain = 0;
};

double mean_residual(std::span<const float> distances) {
  const double sum = std::accumulate(distances.begin(), distances.end(), 0.0);
  return std::max(sum / double(std::max<size_t>(distances.size(), 1)), 1e-30);
}

// On rows drawn from all of the file, of which some are only asked for.
Codes choose_codes(const VectorFile& vectors, const BuildOptions& options,
                   const TrainedAnchors& anchors) {
  const int64_t rows = vectors.rows();
  const int64_t fitting = std::max<int64_t>(1, options.memory / 8 / (vectors.dim() * 4));
  const int64_t count = std::min({rows, kSamplePoints, fitting});
  std::vector<int64_t> numbers = sample_rows(rows, count, options.seed + 1);
  const int64_t asked = count > 4 * kHeldOut ? kHeldOut : 0;
  std::vector<int64_t> queries;
  for (int64_t i = 0; i < asked; ++i) {
    const int64_t at = i * (count / asked);
    queries.push_back(numbers[size_t(at)]);
    numbers[size_t(at)] = -1;
  }
  std::erase(numbers, -1);
  const std::vector<float> points = read_points(vectors, options.metric, numbers);
  std::vector<int32_t> cells(numbers.size());
  std::vector<float> distances(numbers.size());
  NearestAnchors(anchors.data, anchors.dim).find(points, cells, distances);
  const double mean_n2 = mean_residual(distances);
  const auto dim = int32_t(vectors.dim());
  if (options.bits == 0 || options.transform == TransformMode::rotation || queries.empty()) {
    return {rotation_spec(dim, options.bits, options.seed, mean_n2), {}, 0};
  }
  const std::vector<float> held_out = read_points(vectors, options.metric, queries);
  const TransformSample sample = {options.metric, dim, anchors.data, points, cells, held_out, rows};
  if (options.transform == TransformMode::automatic) {
    TransformChoice choice = choose_transform(sample, options.bits, options.seed);
    set_units(choice.spec, mean_n2);
    return {std::move(choice.spec), std::move(choice.diagonals), choice.coding_gain};
  }
  Codes codes = {pca_spec(sample, options.bits, options.seed), {}, coding_gain(sample)};
  set_units(codes.spec, mean_n2);
  if (codes.spec.transform == TransformKind::pca) {
    codes.diagonals = train_diagonals(Coder(codes.spec), anchors.data, points, cells);
  }
  return codes;
}

// Rounds anchors to f16, half the room, where that moves them by so little that residuals do not
// notice; these are taken from the rounded ones. Whether it did.
bool round_anchors(std::vector<float>& anchors, int64_t dim, double energy) {
  constexpr double kUnnoticed = 1e-4;  // of a mean squared residual
  std::vector<float> rounded;
  double moved = 0;
  for (const float x : anchors) {
    rounded.push_back(f16(x));
    moved += std::pow(double(x) - double(rounded.back()), 2);
  }
  if (!(moved * double(dim) <= kUnnoticed * energy * double(anchors.size()))) return false;
  anchors = std::move(rounded);
  return true;
}

// The lists of some cells, encoded by one pass over the file.
class Encoder {
 public:
  Encoder(const VectorFile& vectors, const BuildOptions& options, const Coder& coder,
          std::span<const float> anchors, std::span<const float> diagonals,
          std::span<const int32_t> cells)
      : vectors_(vectors),
        options_(options),
        coder_(coder),
        anchors_(anchors),
        diagonals_(diagonals),
        cells_(cells),
        counts_(anchors.size() / size_t(vectors.dim()), 0) {
    for (const int32_t cell : cells) ++counts_[size_t(cell)];
  }

  void give(int32_t cell, std::vector<int64_t>& ids, std::vector<std::byte>& blocks,
            const std::function<void(int64_t)>& progress) {
    if (cell >= end_) encode_from(cell, progress);
    ids = std::move(ids_[size_t(cell - begin_)]);
    blocks = std::move(blocks_[size_t(cell - begin_)]);
  }

 private:
  int64_t list_bytes(size_t cell) const {
    return block_count(counts_[cell]) * coder_.shape().block_bytes +
           counts_[cell] * int64_t(sizeof(int64_t));
  }

  // As many cells as fit into half of the memory, and at least one.
  void encode_from(int32_t first, const std::function<void(int64_t)>& progress) {
    begin_ = end_ = first;
    int64_t bytes = 0;
    while (size_t(end_) < counts_.size()) {
      bytes += list_bytes(size_t(end_));
      if (end_ > begin_ && bytes > options_.memory / 2) break;
      ++end_;
    }
    const auto count = size_t(end_ - begin_);
    ids_.assign(count, {});
    blocks_.assign(count, {});
    for (size_t i = 0; i < count; ++i) {
      const auto cell = size_t(begin_) + i;
      ids_[i].reserve(size_t(counts_[cell]));
      blocks_[i].resize(size_t(block_count(counts_[cell]) * coder_.shape().block_bytes));
    }
    for_each_chunk(vectors_, options_.metric, options_.memory / 8,
                   [&](int64_t row, std::span<const float> rows) {
                     add(row, rows);
                     progress(row + int64_t(rows.size()) / vectors_.dim());
                   });
  }

  void add(int64_t first_row, std::span<const float> rows) {
    const auto dim = size_t(vectors_.dim());
    std::vector<std::vector<int64_t>> of_cell(ids_.size());
    const auto n = int64_t(rows.size() / dim);
    for (int64_t i = 0; i < n; ++i) {
      const int32_t cell = cells_[size_t(first_row + i)];
      if (cell >= begin_ && cell < end_) of_cell[size_t(cell - begin_)].push_back(i);
    }
    thread_pool().parallel_for(int64_t(of_cell.size()), 1, [&](int64_t begin, int64_t end) {
      for (auto c = size_t(begin); c < size_t(end); ++c) {
        if (of_cell[c].empty()) continue;
        const size_t cell = size_t(begin_) + c;
        const std::span<const float> anchor = anchors_.subspan(cell * dim, dim);
        const std::vector<float> diagonal =
            diagonals_.empty() ? std::vector<float>()
                               : padded_row(coder_.spec(), diagonals_.subspan(cell * dim, dim));
        for (const int64_t i : of_cell[c]) {
          const auto position = int64_t(ids_[c].size());
          ids_[c].push_back(first_row + i);
          if (coder_.spec().bits == 0) continue;
          coder_.encode_rows(rows.subspan(size_t(i) * dim, dim), anchor, diagonal,
                             blocks_[c].data(), position);
        }
      }
    });
  }

  const VectorFile& vectors_;
  const BuildOptions& options_;
  const Coder& coder_;
  const std::span<const float> anchors_, diagonals_;
  const std::span<const int32_t> cells_;
  std::vector<int64_t> counts_;
  int32_t begin_ = 0, end_ = 0;
  std::vector<std::vector<int64_t>> ids_;
  std::vector<std::vector<std::byte>> blocks_;
};

}  // namespace

BuildReport build_index(const VectorFile& vectors, const std::filesystem::path& to,
                        const BuildOptions& options, const TrainingCallback& training,
                        const std::function<void(const BuildProgress&)>& progress) {
  if (options.bits < 0 || options.bits > kMostBits) {
    fail("compress: expected bits from 0 to ", kMostBits, ", got ", options.bits);
  }
  if (options.split_planes && options.bits < 2) {
    fail("compress: split planes need at least 2 bits, got ", options.bits);
  }
  constexpr int64_t kLeastMemory = int64_t(16) << 20;
  if (options.memory < kLeastMemory) {
    fail("compress: expected a memory of at least ", kLeastMemory, " bytes, got ", options.memory);
  }
  const auto tell = [&](BuildProgress::Phase phase, int64_t done) {
    if (progress) progress({phase, done, vectors.rows()});
  };
  BuildReport report;
  Stopwatch clock;
  AnchorOptions anchor_options = options.anchors;
  anchor_options.seed = options.seed;
  TrainedAnchors anchors =
      train_anchors(vectors, options.metric, anchor_options, options.memory / 2, training);
  const bool half_anchors = round_anchors(anchors.data, anchors.dim, anchors.energy);
  report.train_seconds = clock.lap();
  Codes codes = choose_codes(vectors, options, anchors);
  codes.spec.planes = options.split_planes;
  report.transform_seconds = clock.lap();

  std::vector<int32_t> cells(size_t(vectors.rows()));
  const NearestAnchors nearest(anchors.data, anchors.dim);
  std::vector<float> distances;
  for_each_chunk(vectors, options.metric, options.memory / 8,
                 [&](int64_t row, std::span<const float> rows) {
                   const size_t n = rows.size() / size_t(vectors.dim());
                   distances.resize(n);
                   nearest.find(rows, std::span(cells).subspan(size_t(row), n), distances);
                   tell(BuildProgress::Phase::assign, row + int64_t(n));
                 });

  const Coder coder(codes.spec);
  Encoder encoder(vectors, options, coder, anchors.data, codes.diagonals, cells);
  const IndexBlobs blobs(codes.spec, codes.diagonals);
  IndexInfo info;
  info.dim = int32_t(vectors.dim());
  info.metric = options.metric;
  info.block_bytes = codes.spec.bits == 0 ? 0 : coder.shape().block_bytes;
  info.tail = options.split_planes ? planes_layout(hot_bytes(codes.spec)) : TailLayout::registers;
  info.anchors = anchors.data;
  info.half_anchors = half_anchors;
  info.blobs = blobs.all();
  write_index(to, info,
              [&](int32_t cell, std::vector<int64_t>& ids, std::vector<std::byte>& blocks) {
                encoder.give(cell, ids, blocks,
                             [&](int64_t done) { tell(BuildProgress::Phase::encode, done); });
              });
  report.encode_seconds = clock.lap();
  report.seeding_seconds = anchors.seeding_seconds;
  report.rows = vectors.rows();
  report.dim = vectors.dim();
  report.cells = anchors.count();
  report.iterations = anchors.iterations;
  report.converged = anchors.converged;
  report.energy = anchors.energy;
  report.is_pca = codes.spec.transform == TransformKind::pca;
  report.coding_gain = codes.coding_gain;
  report.file_bytes = int64_t(std::filesystem::file_size(to));
  report.vector_bytes = vectors.rows() * vectors.dim() * size_of(vectors.dtype());
  return report;
}

}  // namespace tessera::lattice
