// Making a kernel's loops long and few.
#pragma once

#include "tessera/kernel/kernel_ir.h"

namespace tessera {

// Drops dimensions of extent 1 and merges neighbours through which every access moves evenly; the
// border between outer and inner dimensions stays. Leaves what KernelIR asks for: at least one
// dimension, and an inner one.
void collapse(KernelIR& ir);

}  // namespace tessera
