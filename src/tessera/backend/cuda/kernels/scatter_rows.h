// scatter_add of whole rows: x (L, D), index (N), src (N, D) -> y (L, D), as the gradient of an
// embedding asks.
#pragma once

#include "tessera/backend/gpu/session.h"

namespace tessera::cuda {

// Null where the call is another scatter: one whose columns have indices of their own, of integers,
// or with rows that do not lie together.
std::unique_ptr<gpu::GpuExecutable> make_scatter_rows(gpu::Session& session,
                                                      const KernelCall& call);

}  // namespace tessera::cuda
