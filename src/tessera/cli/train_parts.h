// What the options of `tessera train` choose among the parts of optim/.
#pragma once

#include <memory>
#include <optional>

#include "tessera/cli/train_config.h"
#include "tessera/optim/optim.h"

namespace tessera::cli {

// Biases and what is called ln_… do not decay.
std::unique_ptr<Optimizer> make_optimizer(const TrainConfig& config, const Parameters& parameters);

// f16 alone needs a scaled loss.
bool scales_loss(const TrainConfig& config);

// With the warm-up. Throws UsageError for an exponential one that nothing gives a factor.
Schedule make_schedule(const TrainConfig& config);

// None where it is not asked for. Throws UsageError where nothing will be evaluated.
std::optional<Plateau> make_plateau(const TrainConfig& config);

}  // namespace tessera::cli
