// Writing the KernelIR of a group; the second half of `fuse`.
#pragma once

#include <map>

#include "tessera/compile/groups.h"

namespace tessera {

struct EmittedKernel {
  KernelIR ir;
  std::vector<std::pair<int, int>> inputs;   // (instance, output) of each input operand
  std::vector<std::pair<int, int>> outputs;  // of each output operand
};

// `stored(instance)` tells which members are needed outside the group.
EmittedKernel emit_kernel(const Instances& instances, const Grouping& grouping, const Group& group,
                          const std::vector<char>& stored);

}  // namespace tessera
