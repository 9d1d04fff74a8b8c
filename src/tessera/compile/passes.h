// The passes, in the order in which compile_graph runs them, and the checks between them.
#pragma once

#include <string>

#include "tessera/compile/compile.h"
#include "tessera/compile/instances.h"

namespace tessera {

// Graph to graph. -------------------------------------------------------------------------------

// Removes what no backend runs: kernel ops the target lacks become their composites, as do those it
// has for long rows alone where generated kernels would compute more than them; custom_vjp and
// stop_gradient become the values they pass on; folds of nothing become constants.
GraphFunction lower(const GraphFunction& function, const Target& target, bool kernel_ops);

// Identities that hold for every IEEE value (x·1, x−0, merged reshapes; never x·0), and constants
// folded where the result is exact. Interning makes common subexpressions one node.
GraphFunction simplify(const GraphFunction& function);

// Recognizes spelled-out forms of kernel ops that the target has.
GraphFunction match(const GraphFunction& function, const Target& target);

// Makes one node of two that would read the same rows: a cross_entropy whose loss is used, and the
// one for its gradient, where that does not depend on the loss; a product and the sums of its
// second factor's columns, as are the gradients of a weight and of its bias, where the target has
// a kernel for both. Products that are only read transposed are turned, where the target asks for
// that or for rows of whole chunks. Sums of what is padded side by side become concats, where the
// target's kernels can write such parts.
GraphFunction join(GraphFunction function, const Target& target);

// Graph to instances. ---------------------------------------------------------------------------

// Turns moves into strided views, inserts copies where a kernel or a reshape cannot take the view.
Instances layout(const GraphFunction& function);

// Clones what a checkpoint region computes for its users outside, so that nothing but the region's
// inputs and outputs stays alive in between.
void rematerialize(Instances& instances);

// Has kernels that write with any strides, attention's, store their outputs in the order in which
// they are read, side by side where they are concatenated; what only copied them goes.
void order_outputs(Instances& instances);

// Clones cheap elementwise values into the kernels that read them, where that moves fewer bytes
// than storing them and keeps hardly more memory alive.
void recompute(Instances& instances, int64_t parameters = 0);

// Moves the rows of products and of their operands apart, so that each begins at a multiple of
// `row_bytes`, where every kernel that writes or reads the value takes such rows.
void pad_rows(Instances& instances, int64_t row_bytes);

// Drops instances that nobody needs (an original whose only users now have a clone), keeping order.
void remove_dead(Instances& instances);

// Instances to kernels. -------------------------------------------------------------------------

// Groups instances into kernels and writes their KernelIR. `parameters`: see groups.h.
KernelGraph fuse(const Instances& instances, bool enabled, int64_t parameters = 0);

// Orders kernels: producers first, assigns that can be donated last among readers of their storage,
// otherwise whatever keeps memory low. Recomputations come as late as possible. Sets `after`.
void schedule(KernelGraph& graph);

// Makes one launch of kernels that are alike up to their buffers and first extents and wait for
// each other in no way, such as an optimiser's updates; REQUIRES schedule() before. A kernel may
// run later than scheduled, up to where its value is read, and where that takes next to no memory.
void horizontal(KernelGraph& graph, const Target& target);

// Gives every temporary a place in the arena and every assign its way into storage.
Program plan_memory(const KernelGraph& graph, int alignment);

// Checks: empty when all is well, else what is wrong.
// ----------------------------------------------
std::string verify_instances(const Instances& instances);
std::string verify_kernels(const KernelGraph& graph);
std::string verify_program(const Program& program);

}  // namespace tessera
