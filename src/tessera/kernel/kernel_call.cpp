#include "tessera/kernel/kernel_call.h"

#include <algorithm>

namespace tessera {

bool Target::has(std::string_view kernel) const {
  return std::find(named_kernels.begin(), named_kernels.end(), kernel) != named_kernels.end();
}

}  // namespace tessera
