// The reference interpreter: what a graph means, written to be read. It shares nothing with the
// compiler or the backends but the expressions of base/scalar_ops.def and Philox.
//
// Floats are computed in f64 and not rounded between ops: only leaves, constants, iota and casts
// round to their type, so a backend's error can be measured against it. Integers wrap to their
// width after every op. A float outside an integer type's range casts to the nearest end of it,
// and NaN to 0; backends may differ there.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "tessera/graph/node.h"

namespace tessera {

// Row-major elements: of floats in `real`, of integers and bool in `integer`; the other is empty.
struct Array {
  Type type;
  std::vector<double> real;
  std::vector<int64_t> integer;
};

// The outputs, evaluated; `leaf` gives the data of each leaf. Throws Error where data break an op's
// contract: an index out of range, a leaf of another type.
std::vector<Array> interpret(std::span<const Value> outputs,
                             const std::function<Array(const Node& leaf)>& leaf);

}  // namespace tessera
