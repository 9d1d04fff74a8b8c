#pragma once

#include "tessera/lattice/nearest_kernels.h"

namespace tessera::lattice {

// nullptr where the kernel cannot be compiled.
const NearestKernel* emulated_amx();

}  // namespace tessera::lattice
