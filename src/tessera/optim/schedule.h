// Learning rates as functions of the step, counted from 0, on the host:
//
//   const Schedule schedule = warmup(100, cosine_lr({.peak = 3e-4, .total = 4900}));
//   optimizer.set_lr(schedule(step));
//
// Values are those of PyTorch's schedulers of the same names. A Schedule has no state, so a run
// that is resumed at some step goes on with its rate; Plateau, which looks at losses, has some.
#pragma once

#include <cstdint>
#include <functional>

namespace tessera {

using Schedule = std::function<double(int64_t step)>;

Schedule constant_lr(double lr);
// In equal steps from `from` at step 0 to `to` at step `total`; constant from there on.
Schedule linear_lr(double from, double to, int64_t total);
// lr · factor^⌊step / every⌋
Schedule step_lr(double lr, int64_t every, double factor);
// lr · factor^step
Schedule exponential_lr(double lr, double factor);

struct CosineOptions {
  double peak = 1e-3;
  int64_t total = 1;  // steps; from there on the floor
  double floor = 0;
};
// From the peak down half a cosine to the floor.
Schedule cosine_lr(const CosineOptions& options);

struct OneCycleOptions {
  double peak = 1e-3;
  int64_t total = 2;          // steps; the last of them has the lowest rate, and so all behind it
  double rise = 0.3;          // share of the steps before the peak
  double start_divisor = 25;  // starts at peak / start_divisor
  double end_divisor = 1e4;   // ends at peak / start_divisor / end_divisor
  bool linear = false;        // else half cosines
};
// Smith and Topin 2018: up to the peak, then down to far below the start.
Schedule one_cycle_lr(const OneCycleOptions& options);

// From 1/steps of the schedule's first rate in equal steps to all of it, then the schedule from its
// step 0.
Schedule warmup(int64_t steps, const Schedule& schedule);

struct WarmupCosineOptions {
  double peak = 1e-3;
  int64_t warmup = 0;  // steps; the last of them has the peak
  int64_t total = 1;   // steps; from there on the floor
  double floor = 0;
};
// cosine_lr behind warmup, both within `total`.
Schedule warmup_cosine(const WarmupCosineOptions& options);

struct PlateauOptions {
  double lr = 1e-3;
  double factor = 0.1;      // of the rate, at each reduction
  int64_t patience = 10;    // values in a row without progress that are put up with
  double threshold = 1e-4;  // progress is a value below best · (1 - threshold)
  int64_t cooldown = 0;     // values after a reduction during which none is counted as bad
  double floor = 0;         // the rate does not go below
  bool maximize = false;    // progress is a value above best · (1 + threshold)
};
// Reduces the rate when what is measured makes no more progress.
class Plateau {
 public:
  // What a checkpoint must hold.
  struct State {
    double lr, best;
    int64_t bad = 0, cooldown = 0;  // values without progress; values still to be let off

    bool operator==(const State&) const = default;
  };

  explicit Plateau(const PlateauOptions& options);

  // Takes note of a loss, say of an evaluation, and returns the rate from now on. NaN is no
  // progress.
  double operator()(double value);

  double lr() const { return state_.lr; }
  const State& state() const { return state_; }
  void set_state(const State& state) { state_ = state; }

 private:
  PlateauOptions options_;
  State state_;
};

}  // namespace tessera
