// Training of anchors: the centres of the cells that vectors are sorted into.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "tessera/io/vector_file.h"
#include "tessera/lattice/metric.h"

namespace tessera::lattice {

enum class Training : uint8_t { anneal, lloyd, mini_batch };
enum class Seeding : uint8_t { plus_plus, farthest_first };

// Of the temperature T at iteration t, beginning with T₀, by the rate c:
enum class Cooling : uint8_t {
  geometric,    // T ← T (1 - c)
  exponential,  // T = T₀ exp(-c t)
  inverse,      // T = T₀ / (1 + c t)
};

// The formulae of annealing hold for points scaled so that the energy of the first assignment is 1:
// temperatures and steps mean the same for bytes and for unit vectors.
struct AnchorOptions {
  int64_t anchors = 1024;  // 1 to 2^24
  Training training = Training::anneal;
  Seeding seeding = Seeding::plus_plus;
  uint64_t seed = 0;

  int64_t iterations = 25;  // at most; 0 to 1,000,000
  // An iteration is quiet when the energy changed by no more than this fraction. Three in a row end
  // the training. 0 to 1.
  double tolerance = 1e-3;
  // Seeds are drawn from a sample of so many points for each anchor, where there are more; at least
  // 1.
  int64_t seeding_points = 64;

  // Annealing.
  double temperature = 4;  // T₀, above 0
  Cooling cooling = Cooling::geometric;
  double cooling_rate = 0.05;                                     // 0 to 1
  double learning_rate = 1.25;                                    // above 0, to 2
  double largest_step = std::numeric_limits<double>::infinity();  // of one coordinate; above 0
  double momentum = 0;                                            // 0 to 0.99
  double trim = 0.02;                                             // 0 to 0.49, at both ends
  double huber = 1.5;                                             // κ of τ = κ √T; above 0
  int64_t adjust_every = 5;                                       // iterations; 0: never
  double merge_closeness = 0.2;                                   // 0 to 1
  int64_t fewest = 0, most = 0;  // anchors, around `anchors`; 0: `anchors` itself

  // Mini-batch: points of one iteration; 1 to 2^31 - 1.
  int64_t batch = 16384;
};

struct TrainingProgress {
  int64_t iteration;   // from 1
  double temperature;  // 0 where there is none
  double energy;       // mean squared distance from the nearest anchor, before the anchors move
  int64_t moved;       // points whose cell changed; of a mini-batch all
  int64_t anchors;
  double points_per_second;
  double assign_seconds, means_seconds, update_seconds;
};
using TrainingCallback = std::function<void(const TrainingProgress&)>;

struct TrainedAnchors {
  int64_t dim;
  std::vector<float> data;  // (count, dim)
  int64_t iterations;
  bool converged;  // three quiet iterations, or nothing left to move
  double energy;   // of the last iteration
  double seeding_seconds;

  int64_t count() const { return int64_t(data.size()) / dim; }
};

// points: (n, dim), finite and prepared (points.h). The same points, options and seed give the same
// bits for every number of threads and every instruction set that is chosen at run time. Throws for
// an option out of its range, for fewer points than anchors, and for numbers whose squares f32
// cannot hold.
TrainedAnchors train_anchors(std::span<const float> points, int64_t dim,
                             const AnchorOptions& options, const TrainingCallback& callback = {});

// The same on a sample of the file that takes at most `memory` bytes, all of it where that fits.
// Throws where not even one point for each anchor does.
TrainedAnchors train_anchors(const VectorFile& file, Metric metric, const AnchorOptions& options,
                             int64_t memory, const TrainingCallback& callback = {});

}  // namespace tessera::lattice
