#pragma once

#include "tessera/backend/cuda/session.h"

namespace tessera::cuda {

// The kernel "matmul_add": cuBLASLt adds c on the product's way out, in place where that is asked
// for; a kernel of our own adds it afterwards where the library cannot.
std::unique_ptr<gpu::GpuExecutable> make_matmul_add(Session& session, const KernelCall& call);

}  // namespace tessera::cuda
