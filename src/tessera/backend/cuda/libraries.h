// Where NVIDIA's libraries are looked for: the loader's path, CUDA_HOME and CUDA_PATH,
// /usr/local/cuda, the folders of Python's nvidia-* packages, WSL's and Jetson's driver folders.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tessera/runtime/shared_library.h"

namespace tessera::cuda {

// Every file that may be the library, by its `names` ("libnvrtc.so.13"): the names themselves, for
// the loader's path, then those files that exist in `folders`.
std::vector<std::string> library_files(std::span<const char* const> names,
                                       std::span<const std::string> folders);

// The folders of this machine and environment.
std::vector<std::string> library_folders();

std::optional<SharedLibrary> open_library(std::span<const char* const> names);

}  // namespace tessera::cuda
