#pragma once

#include <optional>
#include <span>
#include <string>

#include "tessera/tensor/tensor.h"

namespace tessera {

// Computes everything that `roots` need, operation by operation, and tells of the first one that
// makes an infinity or a NaN out of finite operands: what, how many, in which scope and line.
// Nothing where all is finite. Slow: for finding mistakes.
std::optional<std::string> find_nonfinite(std::span<const Tensor> roots);

}  // namespace tessera
