// The result of `tessera explain --json`.
#pragma once

#include <string>
#include <string_view>

#include "tessera/compile/program.h"

namespace tessera::cli {

// One document and a newline: the model, the counts and bytes of the report, and each kernel in the
// order of the program.
std::string explain_json(std::string_view model, const Program& program);

}  // namespace tessera::cli
