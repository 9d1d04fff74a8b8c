// A KernelIR as an Executable of the CPU backend.
#pragma once

#include <span>

#include "tessera/backend/cpu/plan.h"
#include "tessera/runtime/backend.h"

namespace tessera::cpu {

class GeneratedKernel : public Executable {
 public:
  // REQUIRES verify(ir) to be empty.
  explicit GeneratedKernel(const KernelIR& ir);

  // Throws Error for an index out of range; outputs are then partly written.
  void run(std::span<char* const> operands, int64_t extent0) const;

 private:
  Plan plan_;
};

}  // namespace tessera::cpu
