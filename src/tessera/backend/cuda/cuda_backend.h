// The CUDA backend: kernels generated as CUDA C++ and compiled by NVRTC for the device at hand,
// programs recorded as graphs. The driver and NVRTC are opened at run time; without them the same
// binary has no CUDA device and says why.
#pragma once

#include <memory>
#include <string>

#include "tessera/runtime/backend.h"

namespace tessera {

int cuda_device_count();
std::string cuda_absent();  // why there is no device; empty where there is one
std::unique_ptr<Backend> make_cuda_backend(int index);

}  // namespace tessera
