// In which order a generated kernel does its work. A kernel with reductions runs as a sequence of
// loops over the inner points: what a reduction yields is known after its loop, so an instruction
// belongs to the first loop by which everything it reads is known. Row registers stay; elem
// registers are computed again by each loop that needs them, or kept.
#pragma once

#include <vector>

#include "tessera/kernel/kernel_ir.h"

namespace tessera {

struct Phase {
  std::vector<int> rows;     // row-level instructions before the loop, in order
  std::vector<int> elems;    // elem-level instructions the loop computes, in order
  std::vector<int> reduces;  // the loop feeds these
  std::vector<int> stores;   // elem-level stores that end the loop
  // After keep_values: what the loop reads of earlier loops' elem registers, and which of `elems`
  // later loops read.
  std::vector<int> recalled, kept;
};

// The last phase holds no loop: row-level work is all that is left then. Instructions that no store
// needs appear nowhere, nor do row-level stores, which end the row. Elem stores end the last loop,
// because an output may take the place of an input that an earlier loop still reads.
std::vector<Phase> plan_phases(const KernelIR& ir);

// Lets each elem instruction be computed once, by the first loop that needs it; only constants and
// indices, which cost nothing, are still written again. Of `loads`: each load, and nothing else.
enum class Keep : uint8_t { all, loads };
void keep_values(const KernelIR& ir, std::vector<Phase>& phases, Keep what = Keep::all);

}  // namespace tessera
