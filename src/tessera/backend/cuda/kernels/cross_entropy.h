// cross_entropy: x (R…, C), targets (R…, 1), g (R…, 1) -> loss (R…, 1), dx (R…, C).
#pragma once

#include "tessera/backend/gpu/session.h"

namespace tessera::cuda {

// How a row is divided; see cross_entropy.cpp.
struct EntropyPlan {
  int lanes = 0;           // of the group that takes a row
  int64_t kept_bytes = 0;  // of shared memory that hold the row; 0: it does not fit
};
EntropyPlan plan_entropy(int64_t columns, DType dtype, int64_t shared_bytes);

std::unique_ptr<gpu::GpuExecutable> make_cross_entropy(gpu::Session& session,
                                                       const KernelCall& call);

}  // namespace tessera::cuda
