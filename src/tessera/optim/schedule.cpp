#include "tessera/optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "tessera/base/error.h"

namespace tessera {

Schedule constant_lr(double lr) {
  return [lr](int64_t) { return lr; };
}

Schedule warmup_cosine(const WarmupCosineOptions& options) {
  if (options.warmup < 0 || options.total <= options.warmup) {
    fail("warmup_cosine: expected 0 <= warmup < total, got ", options.warmup, " and ",
         options.total);
  }
  return [o = options](int64_t step) {
    if (step < o.warmup) return o.peak * double(step + 1) / double(o.warmup);
    const double progress = std::min(1.0, double(step - o.warmup) / double(o.total - o.warmup));
    return o.floor + (o.peak - o.floor) * (1 + std::cos(std::numbers::pi * progress)) / 2;
  };
}

}  // namespace tessera
