// Learning rates as functions of the step, counted from 0, on the host:
//
//   const Schedule schedule = warmup_cosine({.peak = 3e-4, .warmup = 100, .total = 5000});
//   optimizer.set_lr(schedule(step));
#pragma once

#include <cstdint>
#include <functional>

namespace tessera {

using Schedule = std::function<double(int64_t step)>;

Schedule constant_lr(double lr);

struct WarmupCosineOptions {
  double peak = 1e-3;
  int64_t warmup = 0;  // steps; the last of them has the peak
  int64_t total = 1;   // steps; from there on the floor
  double floor = 0;
};

// From peak / warmup in equal steps to the peak, then down half a cosine to the floor.
Schedule warmup_cosine(const WarmupCosineOptions& options);

}  // namespace tessera
