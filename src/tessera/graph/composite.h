// A kernel op's definition in plain ops: what `lower` uses where a Target lacks the kernel, what
// second-order gradients go through, and what the tests compare the kernel with.
#pragma once

#include "tessera/graph/node.h"

namespace tessera {

// The outputs of a kernel op computed by plain ops. REQUIRES info(node.op).kind == OpKind::kernel.
std::vector<Value> composite(const Node& node);

}  // namespace tessera
