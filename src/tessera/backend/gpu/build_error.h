// What a user is told, and gets to keep, when a kernel does not compile.
#pragma once

#include <string>

namespace tessera::gpu {

// The first line of a compiler's log that speaks of an error, or else the first one.
std::string first_error(const std::string& log);

// Writes the source to a file of the temporary folder, for a bug report; returns its path.
// `suffix` is ".cl" or ".cu".
std::string keep_source(const std::string& op, const std::string& source, const char* suffix);

}  // namespace tessera::gpu
