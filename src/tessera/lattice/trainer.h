// What the ways of training have in common: the arrays, the clock, when to stop.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <vector>

#include "tessera/lattice/anchors.h"
#include "tessera/lattice/merge_split.h"
#include "tessera/lattice/steps.h"

namespace tessera::lattice {

class Stopwatch {
 public:
  // Seconds since the last call, or since construction.
  double lap() {
    const auto now = std::chrono::steady_clock::now();
    const double seconds = std::chrono::duration<double>(now - last_).count();
    last_ = now;
    return seconds;
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

// Counts quiet iterations.
class QuietRule {
 public:
  explicit QuietRule(double tolerance) : tolerance_(tolerance) {}

  // True when this energy is that of the third quiet iteration in a row.
  bool done(double energy) {
    const double change = energy - before_;
    const bool quiet =
        before_ >= 0 && change <= tolerance_ * before_ && -change <= tolerance_ * before_;
    quiet_ = quiet ? quiet_ + 1 : 0;
    before_ = energy;
    return quiet_ >= kQuietIterations;
  }
  void restart() { quiet_ = 0; }

 private:
  static constexpr int kQuietIterations = 3;
  double tolerance_, before_ = -1;
  int quiet_ = 0;
};

// Each begins with the seeds in `result.data` and leaves its anchors there.
void train_lloyd(const Points& points, const AnchorOptions& options,
                 const TrainingCallback& callback, TrainedAnchors& result);
void train_mini_batch(const Points& points, const AnchorOptions& options,
                      const TrainingCallback& callback, TrainedAnchors& result);
void train_anneal(const Points& points, const AnchorOptions& options,
                  const TrainingCallback& callback, TrainedAnchors& result);

}  // namespace tessera::lattice
