#include "tessera/cli/train_parts.h"

#include <algorithm>
#include <cmath>

namespace tessera::cli {

namespace {

constexpr int64_t kWarmup = 20;
constexpr double kFactor = 0.1;
constexpr double kAdamWDecay = 0.1;

// The options that all of them have.
template <class Options>
Options common_options(const TrainConfig& c) {
  Options options;
  const double decay = c.optimizer == "adamw" ? kAdamWDecay : 0;
  options.lr = c.lr;
  options.weight_decay = c.weight_decay >= 0 ? c.weight_decay : decay;
  options.skip_nonfinite = c.debug_nan || scales_loss(c);
  options.groups = {{.pattern = "*.bias", .weight_decay = 0},
                    {.pattern = "*ln_*", .weight_decay = 0}};
  return options;
}

template <class Options>
Options adam_options(const TrainConfig& c) {
  auto options = common_options<Options>(c);
  options.beta1 = c.beta1;
  options.beta2 = c.beta2;
  options.epsilon = c.epsilon;
  return options;
}

SGDOptions sgd_options(const TrainConfig& c) {
  auto options = common_options<SGDOptions>(c);
  options.momentum = c.momentum;
  options.dampening = c.dampening;
  options.nesterov = c.nesterov;
  return options;
}

RMSpropOptions rmsprop_options(const TrainConfig& c) {
  auto options = common_options<RMSpropOptions>(c);
  options.alpha = c.alpha;
  options.epsilon = c.epsilon;
  options.momentum = c.momentum;
  options.centered = c.centered;
  return options;
}

double factor_of(const TrainConfig& c) { return c.lr_factor >= 0 ? c.lr_factor : kFactor; }

double exponential_factor(const TrainConfig& c, int64_t steps) {
  if (c.lr_factor >= 0) return c.lr_factor;
  if (c.lr <= 0 || c.min_lr <= 0) {
    throw UsageError(
        cat("train: --schedule exponential expects --lr-factor, or rates above 0 to go between, ",
            "got --lr ", c.lr, " and --min-lr ", c.min_lr));
  }
  return std::pow(c.min_lr / c.lr, 1 / double(steps));
}

Schedule behind_warmup(const TrainConfig& c, int64_t steps) {
  if (c.schedule == "cosine") {
    return cosine_lr({.peak = c.lr, .total = steps, .floor = c.min_lr});
  }
  if (c.schedule == "linear") return linear_lr(c.lr, c.min_lr, steps);
  if (c.schedule == "step") return step_lr(c.lr, c.lr_every, factor_of(c));
  if (c.schedule == "exponential") return exponential_lr(c.lr, exponential_factor(c, steps));
  if (c.schedule == "one-cycle") {
    return one_cycle_lr({.peak = c.lr,
                         .total = steps,
                         .rise = c.rise,
                         .start_divisor = c.start_divisor,
                         .end_divisor = c.end_divisor});
  }
  return constant_lr(c.lr);  // a plateau, too, which lowers it
}

}  // namespace

std::unique_ptr<Optimizer> make_optimizer(const TrainConfig& c, const Parameters& parameters) {
  if (c.optimizer == "adam") {
    return std::make_unique<Adam>(parameters, adam_options<AdamOptions>(c));
  }
  if (c.optimizer == "sgd") return std::make_unique<SGD>(parameters, sgd_options(c));
  if (c.optimizer == "rmsprop") return std::make_unique<RMSprop>(parameters, rmsprop_options(c));
  return std::make_unique<AdamW>(parameters, adam_options<AdamWOptions>(c));
}

bool scales_loss(const TrainConfig& c) { return c.dtype == "f16"; }

Schedule make_schedule(const TrainConfig& c) {
  const int64_t otherwise = c.schedule == "one-cycle" ? 0 : kWarmup;
  const int64_t rising = c.warmup >= 0 ? c.warmup : otherwise;
  const Schedule behind = behind_warmup(c, std::max<int64_t>(1, c.steps - rising));
  return rising > 0 ? warmup(rising, behind) : behind;
}

std::optional<Plateau> make_plateau(const TrainConfig& c) {
  if (c.schedule != "plateau") return std::nullopt;
  if (c.held_out <= 0 || c.eval_every <= 0) {
    throw UsageError(cat("train: --schedule plateau expects --held-out and --eval-every above 0, ",
                         "got ", c.held_out, " and ", c.eval_every));
  }
  return Plateau({.lr = c.lr,
                  .factor = factor_of(c),
                  .patience = c.patience,
                  .threshold = c.threshold,
                  .cooldown = c.cooldown,
                  .floor = c.min_lr});
}

}  // namespace tessera::cli
