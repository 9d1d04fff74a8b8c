#pragma once

#include "tessera/backend/cuda/session.h"

namespace tessera::cuda {

// The kernels "linear" and "linear_slope": products with what cuBLASLt does on their way out, or by
// a kernel of our own after them where the library cannot; of linear_slope, where that is faster.
std::unique_ptr<gpu::GpuExecutable> make_linear(Session& session, const KernelCall& call);

}  // namespace tessera::cuda
