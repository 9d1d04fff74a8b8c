// Products with one extent of a few elements, such as what is left over where a long one is cut:
// they are read once, at the speed of memory, for which the library has no algorithm.
#pragma once

#include "tessera/backend/gpu/session.h"

namespace tessera::cuda {

inline constexpr int64_t kMostFew = 8;

// a (M, K), b (K, N) -> c (M, N) with M, N or K of at most kMostFew: operands of the call, whatever
// its name. `adds`: c += a b. Any strides.
std::unique_ptr<gpu::GpuExecutable> make_few(gpu::Session& session, const KernelCall& call,
                                             bool adds);

}  // namespace tessera::cuda
