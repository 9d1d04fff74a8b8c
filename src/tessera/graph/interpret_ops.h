// The ops of the reference interpreter (graph/interpret.h), one function each behind evaluate_op.
#pragma once

#include <vector>

#include "tessera/graph/interpret.h"

namespace tessera {

using Operands = std::vector<const Array*>;

// The output of `node` for its inputs' values. REQUIRES an op with one output that is neither a
// leaf nor a kernel op.
Array evaluate_op(const Node& node, const Operands& in);

// What a caller gave for a leaf, checked and rounded to the leaf's type.
Array leaf_data(const Node& node, const Array& data);

}  // namespace tessera
