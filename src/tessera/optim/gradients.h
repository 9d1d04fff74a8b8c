#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "tessera/tensor/var.h"

namespace tessera {

// Each slot once, in the order of its first place.
std::vector<Var> unique_vars(std::span<const Var> vars);

// The gradients of those that have one; an error, prefixed with `op`, when none has.
std::vector<Tensor> gradients_of(std::string_view op, std::span<const Var> vars);

// 0-d bool: no element of any of them is infinite or NaN. REQUIRES one tensor at least.
Tensor all_finite(std::span<const Tensor> tensors);

}  // namespace tessera
