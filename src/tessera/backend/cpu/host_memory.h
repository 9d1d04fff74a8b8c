// Memory of the host for tensors and scratch.
#pragma once

#include <cstdint>

namespace tessera::cpu {

// At least `bytes`, aligned to 64, contents undefined; null where there is no more. Large pieces
// lie on large pages where the system grants them: matrix products walk rows that are pages apart,
// and looking up many small ones takes time. Released by std::free.
void* allocate_host(int64_t bytes);

}  // namespace tessera::cpu
