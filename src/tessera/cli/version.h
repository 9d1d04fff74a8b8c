// What this build is: version, compiler, build type, backends.
#pragma once

#include <string>

namespace tessera::cli {

std::string version_text();
std::string version_json();  // one document and a newline

}  // namespace tessera::cli
