// Gradients of first and second order against central differences in f64.
#pragma once

#include "tessera/conformance/harness.h"

namespace tessera {

// Checks Σ w·y of the application's floating-point outputs y, with fixed random w: its gradient
// with respect to the leaves, by the engine, along random directions; then the gradient of Σ v·∂(Σ
// w·y), with fixed random v, with respect to leaves and w. Values come from the interpreter.
void check_gradients(const Row& row, const Application& application);

}  // namespace tessera
