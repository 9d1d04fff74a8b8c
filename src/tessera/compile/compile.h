// The compiler: graph in, Program out. Passes in order: lower, simplify, match, join, layout,
// rematerialize, order_outputs, recompute, pad_rows, fuse, schedule, horizontal, plan_memory. Each
// is a file here and deterministic.
#pragma once

#include <string>

#include "tessera/compile/program.h"

namespace tessera {

struct CompileOptions {
  bool simplify = true;
  bool match = true;          // and join
  bool rematerialize = true;  // off: checkpoint has no effect
  bool order_outputs = true;  // off: all outputs are stored in the order of their axes
  bool recompute = true;      // off: what kernels share is stored once, never computed twice
  bool pad_rows = true;       // off: all rows are packed
  bool fuse = true;           // off: one kernel per instance
  bool horizontal = true;     // off: kernels that are alike are launched one by one
  bool kernel_ops = true;     // off: every kernel op becomes its composite
#ifdef NDEBUG
  bool verify = false;  // check what each pass leaves behind
#else
  bool verify = true;
#endif
};

Program compile_graph(const GraphFunction& function, const Target& target,
                      const CompileOptions& options = {});

// Equal keys mean equal Programs: the graph's structure and scopes, with leaves and regions
// numbered by first appearance. Needs no compilation.
std::string structure_key(const GraphFunction& function);

}  // namespace tessera
