// The OpenCL backend: kernels generated as OpenCL C 1.2 and compiled by the device's driver, named
// kernels from sources under kernels/. See devices.h for the environment variables.
//
//   TESSERA_CLBLAST  0: matrix products never go to CLBlast. Else those of f32 and f64 do that are
//                    large and dense, where libclblast.so.1 is installed.
#pragma once

#include <memory>
#include <string>

#include "tessera/runtime/backend.h"

namespace tessera {

namespace opencl {

struct DeviceInfo;
std::unique_ptr<Backend> make_backend(const DeviceInfo& info, const std::string& name);

}  // namespace opencl

int opencl_device_count();
std::string opencl_absent();  // why there is no device; empty where there is one
std::unique_ptr<Backend> make_opencl_backend(int index);

}  // namespace tessera
