// Shape and dtype rules: the output types of an op, or an Error that names the op and both shapes.
#pragma once

#include <span>
#include <vector>

#include "tessera/graph/node.h"

namespace tessera {

std::vector<Type> infer_types(Op op, std::span<const Value> inputs, const Attrs& attrs);

}  // namespace tessera
