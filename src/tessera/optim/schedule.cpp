#include "tessera/optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "tessera/base/error.h"

namespace tessera {

namespace {

void check_steps(const char* op, const char* what, int64_t steps) {
  if (steps < 1) fail(op, ": expected ", what, " of at least 1 step, got ", steps);
}

void check_factor(const char* op, double factor) {
  if (!(factor > 0 && std::isfinite(factor))) {
    fail(op, ": expected a finite factor above 0, got ", factor);
  }
}

double half_cosine(double from, double to, double progress) {
  return to + (from - to) * (1 + std::cos(std::numbers::pi * progress)) / 2;
}

}  // namespace

Schedule constant_lr(double lr) {
  return [lr](int64_t) { return lr; };
}

Schedule linear_lr(double from, double to, int64_t total) {
  check_steps("linear_lr", "a total", total);
  return [=](int64_t step) {
    return std::lerp(from, to, std::min(1.0, double(step) / double(total)));
  };
}

Schedule step_lr(double lr, int64_t every, double factor) {
  check_steps("step_lr", "a stretch", every);
  check_factor("step_lr", factor);
  return [=](int64_t step) { return lr * std::pow(factor, double(step / every)); };
}

Schedule exponential_lr(double lr, double factor) {
  check_factor("exponential_lr", factor);
  return [=](int64_t step) { return lr * std::pow(factor, double(step)); };
}

Schedule cosine_lr(const CosineOptions& options) {
  check_steps("cosine_lr", "a total", options.total);
  return [o = options](int64_t step) {
    return half_cosine(o.peak, o.floor, std::min(1.0, double(step) / double(o.total)));
  };
}

Schedule one_cycle_lr(const OneCycleOptions& options) {
  const double top = options.rise * double(options.total) - 1;  // the step of the peak
  const double last = double(options.total) - 1;
  if (!(top > 0 && top < last)) {
    fail("one_cycle_lr: expected a rise of more than one step that ends before the last, got ",
         options.rise, " of ", options.total);
  }
  if (!(options.start_divisor > 0 && options.end_divisor > 0)) {
    fail("one_cycle_lr: expected divisors above 0, got ", options.start_divisor, " and ",
         options.end_divisor);
  }
  return [o = options, top, last](int64_t step) {
    const double start = o.peak / o.start_divisor, end = start / o.end_divisor;
    const auto mixed = [&](double from, double to, double progress) {
      return o.linear ? std::lerp(from, to, progress) : half_cosine(from, to, progress);
    };
    const double at = std::min(double(step), last);
    return at <= top ? mixed(start, o.peak, at / top)
                     : mixed(o.peak, end, (at - top) / (last - top));
  };
}

Schedule warmup(int64_t steps, const Schedule& schedule) {
  if (steps < 0) fail("warmup: expected at least 0 steps, got ", steps);
  return [=](int64_t step) {
    if (step < steps) return schedule(0) * double(step + 1) / double(steps);
    return schedule(step - steps);
  };
}

Schedule warmup_cosine(const WarmupCosineOptions& options) {
  if (options.warmup < 0 || options.total <= options.warmup) {
    fail("warmup_cosine: expected 0 <= warmup < total, got ", options.warmup, " and ",
         options.total);
  }
  return warmup(options.warmup, cosine_lr({.peak = options.peak,
                                           .total = options.total - options.warmup,
                                           .floor = options.floor}));
}

Plateau::Plateau(const PlateauOptions& options)
    : options_(options),
      state_{.lr = options.lr,
             .best = (options.maximize ? -1 : 1) * std::numeric_limits<double>::infinity()} {
  if (!(options.factor > 0 && options.factor < 1)) {
    fail("Plateau: expected a factor between 0 and 1, got ", options.factor);
  }
  if (options.patience < 0 || options.cooldown < 0) {
    fail("Plateau: expected a patience and a cooldown of at least 0, got ", options.patience,
         " and ", options.cooldown);
  }
}

double Plateau::operator()(double value) {
  const PlateauOptions& o = options_;
  State& s = state_;
  const bool better = o.maximize ? value > s.best * (1 + o.threshold)  // the first beats -infinity
                                 : value < s.best * (1 - o.threshold);
  if (better) s.best = value;
  s.bad = better ? 0 : s.bad + 1;
  if (s.cooldown > 0) {
    --s.cooldown;
    s.bad = 0;
  }
  if (s.bad > o.patience) {
    s.lr = std::max(s.lr * o.factor, o.floor);
    s.cooldown = o.cooldown;
    s.bad = 0;
  }
  return s.lr;
}

}  // namespace tessera
