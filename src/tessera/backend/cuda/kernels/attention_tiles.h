// attention and attention_backward of half types on the tensor cores: attention_tiles_text.h.
#pragma once

#include "tessera/backend/gpu/session.h"

namespace tessera::cuda {

// Null for other types, negative scales, operands whose rows are not whole 16-byte chunks, and
// where the device has too little shared memory.
std::unique_ptr<gpu::GpuExecutable> make_attention_tiles(gpu::Session& session,
                                                         const KernelCall& call);

}  // namespace tessera::cuda
