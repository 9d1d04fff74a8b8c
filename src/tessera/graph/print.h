// Graphs as text, for reports, tests and eyes. Values are numbered from 0 in topological order, so
// equal graphs print alike in every process.
#pragma once

#include <span>
#include <string>

#include "tessera/graph/node.h"

namespace tessera {

// One line per node: its outputs, op, types, inputs, attributes the types do not tell, and the
// scope it was built in; the last line names the outputs.
//
//   %0 = leaf f32(2, 3)
//   %1 = sum f32(2, 1) %0 axes=(1,)  # mlp/loss
//   return %1
std::string to_text(std::span<const Value> outputs);

// Graphviz: a box per node, coloured by its OpKind. An edge into an op that is not commutative
// carries the position of the operand at its head, one from a node of several outputs the number of
// the output at its tail.
std::string to_dot(std::span<const Value> outputs);

}  // namespace tessera
