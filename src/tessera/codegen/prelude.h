// What stands before a generated kernel: the dialect's header and those helper functions (t_*) that
// the kernel's text uses.
#pragma once

#include <string>

#include "tessera/codegen/dialect.h"

namespace tessera {

std::string prelude(const std::string& kernel_text, const Dialect& dialect, bool narrow_index);

}  // namespace tessera
