// The lattice's search on vectors like descriptors: a mixture of clusters whose spread falls with
// the dimension by a power law. Prints bytes a vector, then recall@10, queries/s in batches of
// 1,000 and the latency of one query, by nprobe.
//
//   scan [vectors] [bits] [transform] [planes] [folder]   (default 1000000 4 rotation whole;
//       transform: rotation or auto; planes: whole or split; folder: writes base.fbin and
//       query.fbin there, for peers to read)
//
// With split planes, the last column is the share of vectors that single queries read beyond their
// top bits.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <string>
#include <vector>

#include "tessera/base/philox.h"
#include "tessera/base/thread_pool.h"
#include "tessera/lattice/recall.h"
#include "tessera/lattice/search.h"
#include "tessera/lattice/transform.h"

using namespace tessera;
using namespace tessera::lattice;

namespace {

constexpr int32_t kDim = 128, kCells = 1024;
constexpr int64_t kQueries = 1000, kK = 10, kClusters = 2000;
constexpr size_t kTimed = 300;  // queries that are timed one at a time

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Rows [first, first + n) of the mixture.
std::vector<float> draw(int64_t first, int64_t n) {
  const Rotation rotation(kDim, kDim, 42);
  std::vector<float> rows(size_t(n * kDim));
  const auto normal = [](uint64_t stream, uint64_t index) {
    const auto w = philox(stream, index);
    const float radius = std::sqrt(-2 * std::log(unit_float(w[0]) + 0x1p-25f));
    return radius * std::cos(6.2831853f * unit_float(w[1]));
  };
  thread_pool().parallel_for(n, 256, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const auto row = uint64_t(first + i);
      const uint64_t cluster = philox(1, row)[0] % kClusters;
      float* x = &rows[size_t(i * kDim)];
      for (uint64_t j = 0; j < kDim; ++j) {
        const float spread = std::pow(1 + float(j), -0.5f);
        x[j] = spread * (normal(2, cluster * kDim + j) + 0.6f * normal(3, row * kDim + j));
      }
      rotation.apply(x);
    }
  });
  return rows;
}

void write_fbin(const std::string& path, const std::vector<float>& rows) {
  std::ofstream file(path, std::ios::binary);
  const uint32_t header[] = {uint32_t(rows.size() / kDim), kDim};
  file.write(reinterpret_cast<const char*>(header), sizeof header);
  file.write(reinterpret_cast<const char*>(rows.data()), std::streamsize(rows.size() * 4));
}

std::vector<float> squares(const std::vector<float>& rows) {
  std::vector<float> result(rows.size() / kDim, 0.f);
  for (size_t i = 0; i < rows.size(); ++i) result[i / kDim] += rows[i] * rows[i];
  return result;
}

std::vector<int32_t> assign(std::span<const float> rows, const std::vector<float>& anchors) {
  const auto probes = nearest_cells(Metric::l2, kDim, anchors, squares(anchors), rows, 1);
  std::vector<int32_t> result;
  for (const Probe& p : probes) result.push_back(p.cell);
  return result;
}

// A few plain steps of Lloyd on a sample: the measurement is of the scan.
std::vector<float> train(const std::vector<float>& points) {
  const auto sample = std::span(points).first(std::min<size_t>(points.size(), 65536 * kDim));
  std::vector<float> anchors(sample.begin(), sample.begin() + kCells * kDim);
  for (int step = 0; step < 6; ++step) {
    const std::vector<int32_t> cells = assign(sample, anchors);
    std::vector<float> sums(anchors.size(), 0.f), counts(kCells, 0.f);
    for (size_t i = 0; i < cells.size(); ++i) {
      const size_t c = size_t(cells[i]);
      counts[c] += 1;
      for (size_t j = 0; j < kDim; ++j) sums[c * kDim + j] += sample[i * kDim + j];
    }
    for (size_t i = 0; i < anchors.size(); ++i) {
      if (counts[i / kDim] > 0) anchors[i] = sums[i] / counts[i / kDim];
    }
  }
  return anchors;
}

double mean_residual(const std::vector<float>& points, const std::vector<float>& anchors,
                     const std::vector<int32_t>& cells) {
  double sum = 0;
  const size_t n = std::min<size_t>(cells.size(), 10000);
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j < kDim; ++j) {
      const double r = points[i * kDim + j] - anchors[size_t(cells[i]) * kDim + j];
      sum += r * r;
    }
  }
  return sum / double(n);
}

TransformChoice choose(const std::vector<float>& points, const std::vector<float>& anchors,
                       const std::vector<int32_t>& cells, int32_t bits,
                       const std::string& transform) {
  TransformChoice choice;
  if (transform != "auto") {
    choice.spec = rotation_spec(kDim, bits, 7, mean_residual(points, anchors, cells));
    return choice;
  }
  const size_t n = std::min<size_t>(cells.size(), 100000);
  const std::vector<float> held_out = draw(int64_t(points.size()) / kDim + kQueries, 200);
  const double start = now();
  choice = choose_transform({Metric::l2, kDim, anchors, std::span(points).first(n * kDim),
                             std::span(cells).first(n), held_out, int64_t(cells.size())},
                            bits, 7);
  std::printf(
      "%.2f s to choose: gain %.1f dB, recall in the sample %.4f by rotation, %.4f by PCA\n",
      now() - start, choice.coding_gain, choice.rotation_recall, choice.pca_recall);
  return choice;
}

// The k-th best squared distance of each query, from products of blocks.
std::vector<float> truth(const std::vector<float>& points, const std::vector<float>& queries) {
  const std::vector<float> n2 = squares(points), q2 = squares(queries);
  std::vector<float> result(kQueries * kK);
  const int64_t n = int64_t(points.size()) / kDim;
  constexpr int64_t kRows = 20, kStep = 4096;
  thread_pool().parallel_for(kQueries / kRows, 1, [&](int64_t begin, int64_t end) {
    std::vector<float> dots(kRows * kStep);
    for (int64_t q0 = begin * kRows; q0 < end * kRows; q0 += kRows) {
      std::vector<TopK> best(kRows, TopK(kK));
      for (int64_t i0 = 0; i0 < n; i0 += kStep) {
        const int64_t step = std::min(kStep, n - i0);
        code_kernels().products(kDim, &queries[size_t(q0 * kDim)], kRows,
                                &points[size_t(i0 * kDim)], step, dots.data(), kStep);
        for (int64_t q = 0; q < kRows; ++q) {
          TopK& top = best[size_t(q)];
          float bar = top.threshold();
          for (int64_t i = 0; i < step; ++i) {
            const float d =
                q2[size_t(q0 + q)] + n2[size_t(i0 + i)] - 2 * dots[size_t(q * kStep + i)];
            if (d >= bar) continue;
            top.offer({d, 0, i0 + i});
            bar = top.threshold();
          }
        }
      }
      for (int64_t q = 0; q < kRows; ++q) {
        const std::vector<Candidate> sorted = best[size_t(q)].take();
        for (int64_t i = 0; i < kK; ++i) result[size_t((q0 + q) * kK + i)] = sorted[size_t(i)].key;
      }
    }
  });
  return result;
}

double best_of(int runs, const auto& work) {
  double best = 1e9;
  for (int i = 0; i < runs; ++i) {
    const double start = now();
    work();
    best = std::min(best, now() - start);
  }
  return best;
}

// Median seconds of one query at a time; adds up what was read. A query's time is its best of three
// passes over all queries: between two of its turns the others sweep the caches.
double latency(const Searcher& searcher, const std::vector<float>& queries,
               const SearchOptions& options, PlaneCounts& counts) {
  std::vector<double> times(kTimed, 1e9);
  for (int pass = 0; pass < 3; ++pass) {
    for (size_t q = 0; q < kTimed; ++q) {
      const double start = now();
      const SearchResult found =
          searcher.search(std::span(queries).subspan(q * kDim, kDim), options);
      times[q] = std::min(times[q], now() - start);
      counts.add(found.planes);
    }
  }
  std::nth_element(times.begin(), times.begin() + kTimed / 2, times.end());
  return times[kTimed / 2];
}

}  // namespace

int main(int argc, char** argv) {
  const int64_t n = argc > 1 ? std::atoll(argv[1]) : 1000000;
  const int32_t bits = argc > 2 ? std::atoi(argv[2]) : 4;
  const std::vector<float> points = draw(0, n), queries = draw(n, kQueries);
  if (argc > 5) {
    write_fbin(std::string(argv[5]) + "/base.fbin", points);
    write_fbin(std::string(argv[5]) + "/query.fbin", queries);
  }
  double start = now();
  const std::vector<float> anchors = train(points);
  const std::vector<int32_t> cells = assign(points, anchors);
  const double trained = now() - start;
  TransformChoice choice = choose(points, anchors, cells, bits, argc > 3 ? argv[3] : "rotation");
  choice.spec.planes = argc > 4 && std::string(argv[4]) == "split";
  const Coder coder(choice.spec);
  start = now();
  const MemoryLists lists(coder, Metric::l2, anchors, points, cells, {}, choice.diagonals);
  const double encoded = now() - start;
  const Searcher searcher(lists.index());
  std::printf(
      "%lld x %d, %d bits, %s, %d threads: anchors %.2f s, codes %.2f s, %.1f bytes/vector\n",
      static_cast<long long>(n), kDim, bits, code_kernels().name, thread_pool().workers() + 1,
      trained, encoded, double(lists.bytes()) / double(n));

  const std::vector<float> nearest = truth(points, queries);
  const auto original = [&](int64_t id, std::span<float> x) {
    std::copy_n(&points[size_t(id * kDim)], kDim, x.begin());
  };
  std::printf("%8s %10s %12s %10s %10s %10s %10s %10s %10s %10s %10s\n", "nprobe", "recall@10",
              "8-bit alone", "QPS", "QPS alone", "CPU us", "CPU alone", "one, ms", "CPU one",
              "its recall", "refined");
  for (const int32_t nprobe : {8, 16, 32, 64, 128}) {
    double recalls[2], rates[2], cpu[2];
    for (const bool refine : {false, true}) {
      const SearchOptions options = {.k = kK, .nprobe = nprobe, .refine_from = refine ? 1 : 9};
      const SearchResult found = searcher.search(queries, options);
      recalls[refine] =
          recall(Metric::l2, kK, true_distances(Metric::l2, kDim, queries, found.ids, original),
                 nearest, kK);
      const std::clock_t busy = std::clock();
      rates[refine] = kQueries / best_of(7, [&] { searcher.search(queries, options); });
      cpu[refine] = double(std::clock() - busy) / CLOCKS_PER_SEC / 7 / kQueries * 1e6;
    }
    PlaneCounts counts;
    const std::clock_t busy = std::clock();
    const double one = latency(searcher, queries, {.k = kK, .nprobe = nprobe}, counts);
    const double cpu_one = double(std::clock() - busy) / CLOCKS_PER_SEC / (3 * kTimed) * 1e6;
    std::vector<int64_t> ids;  // of one query at a time
    for (size_t q = 0; q < size_t(kQueries); ++q) {
      const SearchResult found =
          searcher.search(std::span(queries).subspan(q * kDim, kDim), {.k = kK, .nprobe = nprobe});
      ids.insert(ids.end(), found.ids.begin(), found.ids.end());
    }
    const double single = recall(
        Metric::l2, kK, true_distances(Metric::l2, kDim, queries, ids, original), nearest, kK);
    std::printf("%8d %10.4f %12.4f %10.0f %10.0f %10.1f %10.1f %10.3f %10.1f %10.4f %9.1f%%\n",
                nprobe, recalls[1], recalls[0], rates[1], rates[0], cpu[1], cpu[0], one * 1e3,
                cpu_one, single,
                100.0 * double(counts.refined) / double(std::max<int64_t>(1, counts.scanned)));
    std::fflush(stdout);
  }
}
