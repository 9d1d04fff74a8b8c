// KernelIR → source text.
//
// The entry's arguments are the operands in their order (pointers to the first element), then
// `extent0` (64 bits) and `error`, a pointer to a 32-bit flag that becomes 1 when an indexed load
// meets an index out of range; that load then yields 0 and memory is not touched.
//
// A map gives each work item one point at a time; a kernel with reductions gives each group one row
// at a time, folded in local memory by a tree of fixed shape, so results repeat bit by bit. Both
// walk on with the stride of the whole launch: any number of groups is right.
//
// The text depends on key(ir), ir.name, the dialect and the options alone.
#pragma once

#include <string>

#include "tessera/codegen/dialect.h"
#include "tessera/kernel/kernel_ir.h"

namespace tessera {

struct RenderOptions {
  int max_group_size = 256;  // a power of two
};

struct RenderedKernel {
  std::string source;
  std::string entry;
  int group_size = 0;  // work items per group, fixed by the text

  // Groups that give every work item at least one point, or every row its own group.
  int64_t group_count(const KernelIR& ir, int64_t extent0) const;
};

// REQUIRES: verify(ir) is empty.
RenderedKernel render(const KernelIR& ir, const Dialect& dialect,
                      const RenderOptions& options = {});

}  // namespace tessera
