// What this build is: version, compiler, build type, backends.
#pragma once

#include <string>

namespace tessera::cli {

std::string compiler();  // that built this: "gcc 12.2.0"
std::string version_text();
std::string version_json();  // one document and a newline

}  // namespace tessera::cli
