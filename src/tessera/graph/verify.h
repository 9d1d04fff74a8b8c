// The verifier: does a graph say what the op table and the type rules allow?
#pragma once

#include <span>
#include <string>

#include "tessera/graph/node.h"

namespace tessera {

// One node in plain fields. make_node cannot build a broken node; a record can describe one, so the
// checker itself can be tested, and passes that keep their own instances can use it.
struct NodeRecord {
  Op op;
  std::span<const Value> inputs;
  Attrs attrs;
  std::span<const Type> types;  // of the outputs
  uint64_t id = 0;
  bool has_vjp = false;
};

// Empty when well formed, else what is wrong: number of inputs and outputs, inputs older than their
// user, attributes the op can read, output types equal to the inferred ones, a backward function
// on custom_vjp and nowhere else.
std::string verify_node(const NodeRecord& record);

// verify_node of everything the outputs need; the first problem, with the node's id and op.
std::string verify_graph(std::span<const Value> outputs);

}  // namespace tessera
