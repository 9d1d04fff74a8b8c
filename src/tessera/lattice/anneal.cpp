#include "tessera/lattice/anneal.h"

#include <cmath>
#include <utility>

#include "tessera/lattice/trainer.h"

namespace tessera::lattice {

double temperature_at(const AnchorOptions& options, int64_t t) {
  const double rate = options.cooling_rate, time = double(t);
  switch (options.cooling) {
    case Cooling::geometric: return options.temperature * std::pow(1 - rate, time);
    case Cooling::exponential: return options.temperature * std::exp(-rate * time);
    case Cooling::inverse: break;
  }
  return options.temperature / (1 + rate * time);
}

double gain_at(const AnchorOptions& options, double temperature) {
  return options.learning_rate * temperature / (1 + temperature);
}

void train_anneal(const Points& points, const AnchorOptions& options,
                  const TrainingCallback& callback, TrainedAnchors& result) {
  Assignment assignment(points.count());
  CellOrder order;
  QuietRule quiet(options.tolerance);
  MovingAnchors anchors = {std::move(result.data), {}};
  anchors.velocity.assign(anchors.data.size(), 0.0f);
  std::vector<float> means;
  double scale = 1;  // the energy of the first assignment, whose square root is the unit of length
  for (int64_t t = 0; t < options.iterations; ++t) {
    Stopwatch clock;
    const AssignResult assigned = assign(points, anchors.data, assignment);
    const double assign_seconds = clock.lap();
    if (t == 0 && assigned.energy > 0) scale = assigned.energy;
    const double temperature = temperature_at(options, t);
    const int64_t count = std::ssize(anchors.data) / points.dim;

    sort_by_cell(assignment.cells, count, order);
    means = anchors.data;  // empty cells stay
    const double tau = options.huber * std::sqrt(temperature * scale);
    robust_means(points, assignment, order, {options.trim, tau}, means);
    const double means_seconds = clock.lap();

    int64_t changed = 0;
    if (options.adjust_every > 0 && (t + 1) % options.adjust_every == 0) {
      const MergeSplitRule rule = {options.merge_closeness, 2 * temperature * scale, options.fewest,
                                   options.most};
      const MergeSplitResult found = merge_and_split(points, order, rule, assignment, anchors);
      changed = found.merged + found.split;
    }
    if (changed > 0) {
      quiet.restart();  // these means are of cells that are no more
    } else {
      update(means,
             {gain_at(options, temperature), options.largest_step * std::sqrt(scale),
              options.momentum},
             anchors.velocity, anchors.data);
      reseed_empty(points, assignment, order, anchors.data);
    }
    const double update_seconds = clock.lap();

    result.iterations = t + 1;
    result.energy = assigned.energy;
    if (callback) {
      const double seconds = assign_seconds + means_seconds + update_seconds;
      callback({t + 1, temperature, assigned.energy, assigned.moved, count,
                double(points.count()) / seconds, assign_seconds, means_seconds, update_seconds});
    }
    result.converged = quiet.done(assigned.energy);
    if (result.converged) break;
  }
  result.data = std::move(anchors.data);
}

}  // namespace tessera::lattice
