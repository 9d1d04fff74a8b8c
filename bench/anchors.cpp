// Training of anchors, phase by phase: [points dim anchors iterations [kernel]]. A kernel's name
// (amx, avx512bf16, avx512, avx2, baseline) leaves the others out of the timed assignments.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "tessera/base/philox.h"
#include "tessera/base/thread_pool.h"
#include "tessera/lattice/anchors.h"
#include "tessera/lattice/nearest.h"
#include "tessera/lattice/nearest_kernels.h"

namespace {

using namespace tessera;
using namespace tessera::lattice;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

float normal(uint64_t seed, uint64_t index) {
  const auto bits = philox(seed, index);
  const float radius = std::sqrt(-2 * std::log(1 - unit_float(bits[0])));
  return radius * std::cos(6.2831853f * unit_float(bits[1]));
}

// A mixture whose coordinates have a power-law spectrum.
std::vector<float> make_points(int64_t n, int64_t dim) {
  const int64_t clusters = 256;
  std::vector<float> points(size_t(n * dim));
  std::vector<float> scale(static_cast<size_t>(dim));
  for (int64_t p = 0; p < dim; ++p) scale[size_t(p)] = std::pow(float(p + 1), -0.5f);
  thread_pool().parallel_for(n, 1024, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t cluster = philox(3, uint64_t(i))[0] % clusters;
      for (int64_t p = 0; p < dim; ++p) {
        const float noise = normal(2, uint64_t(i * dim + p));
        points[size_t(i * dim + p)] =
            scale[size_t(p)] * (normal(1, uint64_t(cluster * dim + p)) + noise);
      }
    }
  });
  return points;
}

void time_kernels(const std::vector<float>& points, const std::vector<float>& anchors, int64_t dim,
                  std::string_view only) {
  const size_t n = points.size() / size_t(dim);
  std::vector<int32_t> cells(n);
  std::vector<float> values(n);
  const double flops = 2.0 * double(n) * double(anchors.size());
  for (const NearestKernel* kernel : available_nearest_kernels()) {
    if (!only.empty() && only != kernel->name) continue;
    const NearestAnchors nearest(anchors, dim, Metric::l2, kernel);
    double best = 1e30;
    for (int run = 0; run < 3; ++run) {
      const double begin = now();
      nearest.find(points, cells, values);
      best = std::min(best, now() - begin);
    }
    const size_t queries = std::min<size_t>(n, 1000), few = 64;
    if (anchors.size() < few * size_t(dim)) continue;
    std::vector<int32_t> few_cells(queries * few);
    std::vector<float> few_values(queries * few);
    double coarse = 1e30;
    for (int run = 0; run < 5; ++run) {
      const double begin = now();
      nearest.find_few({points.data(), queries * size_t(dim)}, int64_t(few), few_cells, few_values);
      coarse = std::min(coarse, now() - begin);
    }
    std::printf("assign %-12s %8.3f s %8.1f GFLOP/s; the 64 nearest of %zu queries %.2f ms\n",
                kernel->name, best, flops / best * 1e-9, queries, coarse * 1e3);
  }
}

void train(const char* name, const std::vector<float>& points, int64_t dim,
           const AnchorOptions& options) {
  double phases[3] = {};
  const double begin = now();
  const TrainedAnchors trained =
      train_anchors(points, dim, options, [&](const TrainingProgress& p) {
        phases[0] += p.assign_seconds;
        phases[1] += p.means_seconds;
        phases[2] += p.update_seconds;
      });
  const double seconds = now() - begin, each = 1.0 / double(trained.iterations);
  std::printf(
      "%-10s %7.3f s: seeding %.3f, %lld iterations of assign %.4f means %.4f update %.4f; "
      "energy %.6g, anchors %lld%s\n",
      name, seconds, trained.seeding_seconds, (long long)trained.iterations, phases[0] * each,
      phases[1] * each, phases[2] * each, trained.energy, (long long)trained.count(),
      trained.converged ? ", converged" : "");
}

}  // namespace

int main(int argc, char** argv) {
  const auto argument = [&](int i, int64_t otherwise) {
    return argc > i ? std::atoll(argv[i]) : otherwise;
  };
  const int64_t n = argument(1, 10000), dim = argument(2, 128), m = argument(3, 256);
  const std::vector<float> points = make_points(n, dim);
  time_kernels(points, {points.end() - m * dim, points.end()}, dim, argc > 5 ? argv[5] : "");
  AnchorOptions options;
  options.anchors = m;
  options.iterations = argument(4, options.iterations);
  options.training = Training::lloyd;
  train("lloyd", points, dim, options);
  options.training = Training::anneal;
  train("anneal", points, dim, options);
  options.training = Training::mini_batch;
  train("mini-batch", points, dim, options);
  options.training = Training::lloyd;
  options.seeding = Seeding::farthest_first;
  train("farthest", points, dim, options);
}
