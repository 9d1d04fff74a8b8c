// Fewer dimensions for the same kernel: neighbours that every access walks as one are merged.
#pragma once

#include "tessera/kernel/kernel_ir.h"

namespace tessera::cpu {

struct Collapsed {
  KernelIR ir;
  int64_t scale0 = 1;  // the launch's extents[0] times this is the extent of ir's dimension 0
};

// Outer dimensions merge with outer ones, inner with inner; a map may merge across, and its inner
// dimension is the last one left. extents[0] is unknown until launch and is never dropped.
Collapsed collapse(const KernelIR& ir);

}  // namespace tessera::cpu
