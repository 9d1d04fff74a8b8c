// Memory that a launch needs for its own duration: per thread, kept from launch to launch, so that
// the steady state allocates nothing.
#pragma once

#include <cstdint>

namespace tessera::cpu {

// A launch holds its shared part (launch) while the same thread may also work on tiles (tile); a
// product is part of a launch that may hold something (beside).
enum class Scratch { launch, tile, beside, count };

// At least `bytes`, aligned to 64. Valid until the next call with the same purpose on this thread.
char* scratch(Scratch purpose, int64_t bytes);

// `bytes` rounded up so that what follows is aligned to 64 again.
inline int64_t padded(int64_t bytes) { return (bytes + 63) / 64 * 64; }

}  // namespace tessera::cpu
