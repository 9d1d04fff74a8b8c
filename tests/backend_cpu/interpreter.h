// A KernelIR run the plainest way: nested loops, one value at a time.
#pragma once

#include <vector>

#include "backend_cpu/kernel_builder.h"

namespace tessera::test {

void interpret_kernel(const KernelIR& ir, std::vector<Array>& operands);

}  // namespace tessera::test
