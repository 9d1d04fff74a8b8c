// Kernels that start before the one in front of them has ended (compute capability 9.0 and above).
// Their groups are put in place meanwhile and then wait for what it wrote: between small kernels
// that saves most of the pause.
#pragma once

#include <string>

namespace tessera::cuda {

// `source` with every entry waiting first, and then letting the next kernel be put in place.
// Numbers of lines stay.
std::string with_early_start(const std::string& source);

}  // namespace tessera::cuda
