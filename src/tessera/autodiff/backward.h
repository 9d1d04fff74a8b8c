// Reverse-mode differentiation: graph in, graph out.
#pragma once

#include <span>
#include <vector>

#include "tessera/graph/node.h"

namespace tessera {

// Σ_k output_grads[k] · ∂outputs[k]/∂inputs[i] for each i, as a graph that can be differentiated
// again. The entry of an input that the outputs do not depend on (or only through ops without a
// gradient) is empty. REQUIRES each gradient to have the type of its output.
std::vector<Value> backward(std::span<const Value> outputs, std::span<const Value> output_grads,
                            std::span<const Value> inputs);

// Whether the gradient table has a row for `op`; a row may say "no gradient".
bool has_gradient_row(Op op);

}  // namespace tessera
