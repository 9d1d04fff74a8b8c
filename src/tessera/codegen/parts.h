// Joined kernels: one text that serves many sets of operands, its parts, in one launch. A table
// says where each part's operands lie and which of the launch's groups are its own; a group finds
// its part and is then a group of a kernel like any other.
#pragma once

#include <string>

#include "tessera/codegen/body.h"
#include "tessera/codegen/render.h"

namespace tessera {

std::string table_types(const KernelIR& ir, const BodyWriter& body, const Dialect& dialect,
                        const RenderOptions& options);

// Parameters of an entry, between its brackets, and what it begins with: operands, extent0 and, of
// a split kernel, scratch and splits as other kernels have them; `group` and `groups` stand for the
// dialect's own.
std::string table_parameters(const Dialect& dialect);
std::string enter_part(const KernelIR& ir, const BodyWriter& body, const Dialect& dialect,
                       const RenderOptions& options);

}  // namespace tessera
