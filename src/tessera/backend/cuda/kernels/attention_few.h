// attention of few queries, as decoding asks for: each reads all keys and values once.
#pragma once

#include "tessera/backend/gpu/session.h"

namespace tessera::cuda {

// Null for many queries, and where heads are not a power of two of 16-byte chunks.
std::unique_ptr<gpu::GpuExecutable> make_attention_few(gpu::Session& session,
                                                       const KernelCall& call);

}  // namespace tessera::cuda
