// Applies a rewrite rule to everything a GraphFunction computes; externals stay.
#pragma once

#include "tessera/compile/program.h"
#include "tessera/graph/rewrite.h"

namespace tessera {

// Everything the function computes: outputs, then the values of assigns.
std::vector<Value> computed_values(const GraphFunction& function);

GraphFunction rewrite_function(const GraphFunction& function, const RewriteRule& rule);

}  // namespace tessera
