// The built-in training steps that `tessera explain` shows.
#pragma once

#include <span>
#include <string_view>

#include "tessera/compile/program.h"

namespace tessera::cli {

struct ExplainModel {
  std::string_view name;
  std::string_view help;
  // The step as a function of its batch and of the storage of all Vars. With `checkpointed`, blocks
  // are computed again for the gradient.
  GraphFunction (*trace)(bool checkpointed);
};

std::span<const ExplainModel> explain_models();

}  // namespace tessera::cli
