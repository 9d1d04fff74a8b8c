#include <algorithm>

#include "tessera/lattice/draws.h"
#include "tessera/lattice/trainer.h"

namespace tessera::lattice {

void train_lloyd(const Points& points, const AnchorOptions& options,
                 const TrainingCallback& callback, TrainedAnchors& result) {
  Assignment assignment(points.count());
  CellOrder order;
  QuietRule quiet(options.tolerance);
  for (int64_t t = 1; t <= options.iterations; ++t) {
    Stopwatch clock;
    const AssignResult assigned = assign(points, result.data, assignment);
    const double assign_seconds = clock.lap();
    sort_by_cell(assignment.cells, result.count(), order);
    plain_means(points, order, result.data);
    const double means_seconds = clock.lap();
    const int64_t reseeded = reseed_empty(points, assignment, order, result.data);
    const double update_seconds = clock.lap();
    result.iterations = t;
    result.energy = assigned.energy;
    if (callback) {
      const double seconds = assign_seconds + means_seconds + update_seconds;
      callback({t, 0, assigned.energy, assigned.moved, result.count(),
                double(points.count()) / seconds, assign_seconds, means_seconds, update_seconds});
    }
    // Where nothing moved the means are what they were; a reseeded anchor will move some.
    result.converged = quiet.done(assigned.energy) || (assigned.moved == 0 && reseeded == 0);
    if (result.converged) return;
  }
}

// An anchor moves to the mean of all points that batches ever gave it, each as often as it was
// drawn.
void train_mini_batch(const Points& points, const AnchorOptions& options,
                      const TrainingCallback& callback, TrainedAnchors& result) {
  const int64_t size = std::min(options.batch, points.count()), dim = points.dim;
  Draws draws(options.seed, Draws::Purpose::batch);
  std::vector<float> rows(static_cast<size_t>(size * dim));
  std::vector<float> means(result.data.size());
  std::vector<double> seen(static_cast<size_t>(result.count()));
  Assignment assignment(size);
  CellOrder order;
  QuietRule quiet(options.tolerance);
  for (int64_t t = 1; t <= options.iterations; ++t) {
    Stopwatch clock;
    for (int64_t i = 0; i < size; ++i) {
      std::copy_n(points.row(draws.below(points.count())), dim, rows.begin() + i * dim);
    }
    const Points batch = {rows, dim};
    const AssignResult assigned = assign(batch, result.data, assignment);
    const double assign_seconds = clock.lap();
    sort_by_cell(assignment.cells, result.count(), order);
    plain_means(batch, order, means);
    const double means_seconds = clock.lap();
    for (int64_t cell = 0; cell < result.count(); ++cell) {
      if (order.size(cell) == 0) continue;
      seen[size_t(cell)] += double(order.size(cell));
      const double share = double(order.size(cell)) / seen[size_t(cell)];
      for (size_t p = size_t(cell * dim); p < size_t((cell + 1) * dim); ++p) {
        const double anchor = double(result.data[p]);
        result.data[p] = float(anchor + share * (double(means[p]) - anchor));
      }
    }
    const double update_seconds = clock.lap();
    result.iterations = t;
    result.energy = assigned.energy;
    if (callback) {
      const double seconds = assign_seconds + means_seconds + update_seconds;
      callback({t, 0, assigned.energy, size, result.count(), double(size) / seconds, assign_seconds,
                means_seconds, update_seconds});
    }
    result.converged = quiet.done(assigned.energy);
    if (result.converged) return;
  }
}

}  // namespace tessera::lattice
