#pragma once

#include "tessera/backend/cuda/session.h"

namespace tessera::cuda {

// The kernel "matmul_sums": cuBLASLt sums the columns of b while it multiplies; a kernel of our own
// does where the library cannot, or where that is faster.
std::unique_ptr<gpu::GpuExecutable> make_matmul_sums(Session& session, const KernelCall& call);

}  // namespace tessera::cuda
