#include "tessera/lattice/scan.h"

#include <atomic>
#include <bit>
#include <cmath>
#include <memory>
#include <mutex>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/base/thread_pool.h"
#include "tessera/lattice/estimate.h"

namespace tessera::lattice {

namespace {

struct Entry {
  int32_t query;
  float product;
};

// Up to kTileQueries queries and the cell they all look into.
struct Task {
  int32_t cell;
  int64_t begin, end;  // of entries
};

struct alignas(64) Line {
  std::byte bytes[64];
};

// What one thread works with.
struct Workspace {
  std::vector<TopK> best;  // (queries)
  std::vector<Line> memory;
  int8_t* queries;  // (kTileQueries, padded_dim)
  std::byte* scratch;
  std::vector<int64_t> ids;
  std::vector<uint32_t> passing;  // a bit per position
  PlaneCounts counts;

  Workspace(std::span<const TopK> empty, int32_t padded_dim)
      : best(empty.begin(), empty.end()),
        memory(size_t(kTileQueries * padded_dim + scan_scratch_bytes(padded_dim)) / sizeof(Line)),
        queries(reinterpret_cast<int8_t*>(memory.data())),
        scratch(reinterpret_cast<std::byte*>(queries + kTileQueries * padded_dim)) {}
};

class Scan {
 public:
  Scan(const SearchIndex& index, const TransformedAnchors& anchors, const ScanFilter& filter,
       std::span<const float> queries, std::span<TopK> best)
      : index_(index),
        anchors_(anchors),
        filter_(filter),
        queries_(queries),
        best_(best),
        bounds_(best.size()),
        is_l2_(index.metric == Metric::l2) {
    for (const TopK& b : best) empty_.push_back(b.like());
  }

  // Looks into probes [first, last) of each query's `count`.
  void run(std::span<const Probe> probes, size_t count, size_t first, size_t last) {
    for (size_t q = 0; q < best_.size(); ++q) bounds_[q].store(best_[q].threshold());
    group(probes, count, first, last);
    thread_pool().parallel_for(int64_t(tasks_.size()), 1, [&](int64_t begin, int64_t end) {
      std::unique_ptr<Workspace> space = borrow();
      code_kernels().begin();
      for (int64_t i = begin; i < end; ++i) run_task(tasks_[size_t(i)], *space);
      code_kernels().end();
      give_back(std::move(space));
    });
    for (const auto& space : idle_) {
      for (size_t q = 0; q < best_.size(); ++q) {
        best_[q].merge(space->best[q]);
        space->best[q].clear();
      }
      counts_.add(std::exchange(space->counts, {}));
    }
  }

  const PlaneCounts& counts() const { return counts_; }

 private:
  struct Sink {
    Scan* scan;
    Workspace* space;
    const Entry* entries;
    int32_t cell;
    int64_t offset;  // positions of the cell's earlier lists
    float bases[kTileQueries];
  };

  void group(std::span<const Probe> probes, size_t count, size_t first, size_t last);
  void run_task(const Task& task, Workspace& space);
  void scan_list(const ListView& view, const ScanTile& tile);
  HotQuery hot_query(int32_t cell, const int8_t* query, float slope) const;
  void find_passing(int32_t cell, Workspace& space) const;
  static float take(void* context, int slot, int64_t first, uint32_t mask, const float* keys);
  float relative_threshold(int32_t query, float base) const;
  void lower_bound_of(int32_t query, float threshold);
  std::unique_ptr<Workspace> borrow();
  void give_back(std::unique_ptr<Workspace> space);

  const SearchIndex& index_;
  const TransformedAnchors& anchors_;
  const ScanFilter& filter_;
  std::span<const float> queries_;
  std::span<TopK> best_;
  std::vector<TopK> empty_;
  std::vector<std::atomic<float>> bounds_;  // no better than what some thread has k of
  bool is_l2_;
  PlaneCounts counts_;
  std::vector<Entry> entries_;  // by cell
  std::vector<Task> tasks_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Workspace>> idle_;
};

void Scan::group(std::span<const Probe> probes, size_t count, size_t first, size_t last) {
  const size_t n = best_.size(), cells = size_t(index_.cells());
  std::vector<int64_t> begin(cells + 1, 0);
  const auto each = [&](auto use) {
    for (size_t q = 0; q < n; ++q) {
      for (size_t p = first; p < last; ++p) use(int32_t(q), probes[q * count + p]);
    }
  };
  each([&](int32_t, const Probe& p) { ++begin[size_t(p.cell) + 1]; });
  for (size_t c = 0; c < cells; ++c) begin[c + 1] += begin[c];
  std::vector<int64_t> next(begin.begin(), begin.end() - 1);
  entries_.resize(n * (last - first));
  each([&](int32_t q, const Probe& p) {
    entries_[size_t(next[size_t(p.cell)]++)] = {q, p.product};
  });
  tasks_.clear();
  for (size_t c = 0; c < cells; ++c) {
    const int64_t queries = begin[c + 1] - begin[c];
    const int64_t tiles = (queries + kTileQueries - 1) / kTileQueries;
    for (int64_t t = 0; t < tiles; ++t) {  // of even sizes: small ones scan less efficiently
      tasks_.push_back(
          {int32_t(c), begin[c] + queries * t / tiles, begin[c] + queries * (t + 1) / tiles});
    }
  }
}

std::unique_ptr<Workspace> Scan::borrow() {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      std::unique_ptr<Workspace> space = std::move(idle_.back());
      idle_.pop_back();
      return space;
    }
  }
  return std::make_unique<Workspace>(empty_, anchors_.padded_dim);
}

void Scan::give_back(std::unique_ptr<Workspace> space) {
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(space));
}

// A little high: subtracting rounds, and a candidate that would enter must not be lost to that,
// or results would depend on which list came first.
float Scan::relative_threshold(int32_t query, float base) const {
  const float bound = bounds_[size_t(query)].load(std::memory_order_relaxed);
  return (bound - base) + 4e-7f * (std::fabs(bound) + std::fabs(base));
}

void Scan::lower_bound_of(int32_t query, float threshold) {
  std::atomic<float>& bound = bounds_[size_t(query)];
  float seen = bound.load(std::memory_order_relaxed);
  while (threshold < seen &&
         !bound.compare_exchange_weak(seen, threshold, std::memory_order_relaxed)) {
  }
}

float Scan::take(void* context, int slot, int64_t first, uint32_t mask, const float* keys) {
  const Sink& sink = *static_cast<const Sink*>(context);
  const int32_t query = sink.entries[slot].query;
  const float base = sink.bases[slot];
  TopK& best = sink.space->best[size_t(query)];
  for (; mask != 0; mask &= mask - 1) {
    const int i = std::countr_zero(mask);
    const int64_t position = sink.offset + first + i;
    if (sink.scan->filter_.active() &&
        (sink.space->passing[size_t(position / 32)] >> (position % 32) & 1) == 0) {
      continue;
    }
    best.offer({base + keys[i], sink.cell, position});
  }
  if (best.full()) sink.scan->lower_bound_of(query, best.threshold());
  return sink.scan->relative_threshold(query, base);
}

void Scan::find_passing(int32_t cell, Workspace& space) const {
  space.ids.resize(size_t(index_.count(cell)));
  index_.ids(cell, space.ids);
  space.passing.assign(space.ids.size() / 32 + 1, 0);
  for (size_t i = 0; i < space.ids.size(); ++i) {
    if (filter_.passes(space.ids[i])) space.passing[i / 32] |= 1u << (i % 32);
  }
}

void Scan::scan_list(const ListView& view, const ScanTile& tile) {
  if (index_.coder->spec().bits > 0) {
    code_kernels().scan(index_.coder->shape(), view.blocks, view.count, tile);
    return;
  }
  const float zeros[kBlock] = {};  // no codes: every vector is where its anchor is
  for (int64_t first = 0; first < view.count; first += kBlock) {
    const int64_t left = view.count - first;
    const uint32_t valid = left >= kBlock ? ~0u : (1u << left) - 1;
    for (int q = 0; q < tile.count; ++q) {
      if (tile.thresholds[q] < 0) continue;
      tile.thresholds[q] = tile.sink(tile.context, q, first, valid, zeros);
    }
  }
}

HotQuery Scan::hot_query(int32_t cell, const int8_t* query, float slope) const {
  const CodeShape& shape = index_.coder->shape();
  int32_t offset = 0;
  float n2 = 0;  // of the query, in the weights of the top bits
  for (int32_t j = 0; j < shape.dim; j += kGroup) {
    const int bits = shape.group_bits[j / kGroup], end = std::min(j + kGroup, shape.dim);
    if (bits == 0) continue;
    int32_t sum = 0, squares = 0;
    for (int32_t i = j; i < end; ++i) {
      sum += query[i];
      squares += query[i] * query[i];
    }
    offset += sum << cold_bits(bits);
    n2 += std::ldexp(float(squares), 2 * cold_bits(bits));
  }
  const float of_codes = anchors_.hot_n2[size_t(cell)];
  return {offset, kHotEpsilon * std::fabs(slope) * std::sqrt(n2 / of_codes), of_codes};
}

void Scan::run_task(const Task& task, Workspace& space) {
  const CodeShape& shape = index_.coder->shape();
  const size_t padded = size_t(shape.padded_dim);
  const std::span<const float> diagonal = anchors_.diagonal(task.cell);
  Sink sink = {this, &space, &entries_[size_t(task.begin)], task.cell, 0, {}};
  float slopes[kTileQueries], thresholds[kTileQueries];
  int32_t offsets[kTileQueries];
  const int count = int(task.end - task.begin);
  for (int i = 0; i < count; ++i) {
    const Entry& entry = sink.entries[i];
    const QuantizedQuery q = code_kernels().quantize(
        shape, &queries_[size_t(entry.query) * padded],
        is_l2_ ? anchors_.anchor(task.cell).data() : nullptr,
        diagonal.empty() ? nullptr : diagonal.data(), space.queries + size_t(i) * padded);
    slopes[i] = is_l2_ ? -q.scale : -0.5f * q.scale;
    offsets[i] = q.offset;
    sink.bases[i] = is_l2_ ? q.n2 : -entry.product;
    thresholds[i] = relative_threshold(entry.query, sink.bases[i]);
  }
  if (filter_.active()) find_passing(task.cell, space);
  const bool prunes = shape.hot_bytes > 0 && count == 1;
  const HotQuery hot = prunes ? hot_query(task.cell, space.queries, slopes[0]) : HotQuery{0, 0, 0};
  const ScanTile tile = {.count = count,
                         .n2_weight = is_l2_ ? 1.f : 0.f,
                         .queries = space.queries,
                         .slopes = slopes,
                         .offsets = offsets,
                         .thresholds = thresholds,
                         .scratch = space.scratch,
                         .sink = take,
                         .context = &sink,
                         .hot = prunes ? &hot : nullptr,
                         .refined = &space.counts.refined};
  for (const ListView& view : index_.lists(task.cell)) {
    scan_list(view, tile);
    sink.offset += view.count;
    if (prunes) space.counts.scanned += view.count;
  }
}

}  // namespace

TransformedAnchors::TransformedAnchors(const SearchIndex& index)
    : padded_dim(index.coder->spec().padded_dim),
      anchors(index.coder->transform_rows(index.anchors)),
      anchor_n2(size_t(index.cells())) {
  const size_t padded = size_t(padded_dim), dim = size_t(index.coder->spec().dim);
  for (size_t c = 0; c < anchor_n2.size(); ++c) {
    for (size_t j = 0; j < padded; ++j) {
      anchor_n2[c] += anchors[c * padded + j] * anchors[c * padded + j];
    }
  }
  if (!index.diagonals.empty()) {
    diagonals.resize(anchors.size());
    for (size_t c = 0; c < anchor_n2.size(); ++c) {
      std::copy_n(&index.diagonals[c * dim], dim, &diagonals[c * padded]);
    }
  }
  if (!index.coder->spec().planes) return;
  for (size_t c = 0; c < anchor_n2.size(); ++c) {
    hot_n2.push_back(index.coder->hot_n2(diagonal(int32_t(c))));
  }
}

PlaneCounts scan_cells(const SearchIndex& index, const TransformedAnchors& anchors,
                       const ScanFilter& filter, std::span<const float> queries,
                       std::span<const Probe> probes, std::span<TopK> best) {
  if (best.empty()) return {};
  const size_t count = probes.size() / best.size();
  Scan scan(index, anchors, filter, queries, best);
  // Nearest cells first: what they hold turns most of the rest away by one comparison.
  const size_t nearest = std::min<size_t>(1, count);
  scan.run(probes, count, 0, nearest);
  if (count > nearest) scan.run(probes, count, nearest, count);
  return scan.counts();
}

}  // namespace tessera::lattice
