// The table of a joined kernel: where the operands of its parts lie.
#pragma once

#include <cstdint>

#include "tessera/kernel/kernel_ir.h"

namespace tessera {

// How many parts a table has room for that takes so many: few sizes serve all numbers of parts.
int64_t table_capacity(int64_t parts);

// The most parts that a table of so many words of 8 bytes has room for; 0: none.
int64_t most_parts(const KernelIR& ir, int64_t table_words);

}  // namespace tessera
