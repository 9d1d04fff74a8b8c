#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "tessera/tensor/var.h"

namespace tessera {

// The gradients of those that have one; an error, prefixed with `op`, when none has.
std::vector<Tensor> gradients_of(std::string_view op, std::span<const Var> vars);

}  // namespace tessera
