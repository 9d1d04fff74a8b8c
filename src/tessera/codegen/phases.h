// In which order a generated kernel does its work. A kernel with reductions runs as a sequence of
// loops over the inner points: what a reduction yields is known after its loop, so an instruction
// belongs to the first loop by which everything it reads is known. Loops recompute the elem
// registers they need; row registers stay.
#pragma once

#include <vector>

#include "tessera/kernel/kernel_ir.h"

namespace tessera {

struct Phase {
  std::vector<int> rows;     // row-level instructions before the loop, in order
  std::vector<int> elems;    // elem-level instructions the loop needs, in order
  std::vector<int> reduces;  // the loop feeds these
};

// The last phase holds no loop when nothing but row-level work is left. Instructions that no store
// needs appear nowhere, and stores neither: elem stores end the last loop and row stores the row,
// because an output may take the place of an input that an earlier loop still reads.
std::vector<Phase> plan_phases(const KernelIR& ir);

}  // namespace tessera
