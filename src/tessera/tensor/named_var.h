#pragma once

#include <string>

#include "tessera/tensor/var.h"

namespace tessera {

// A Var under the name it has in a model, such as "block.fc1.weight", or in an optimiser.
struct NamedVar {
  std::string name;
  Var var;
};

}  // namespace tessera
