// The OpenCL devices of this process.
//
//   TESSERA_OPENCL_LIBRARY     the library to open instead of libOpenCL.so.1
//   TESSERA_OPENCL_SUBDEVICES  N: each CPU device that can be divided appears as N devices, each
//                              with an equal part of its compute units
//   TESSERA_OPENCL_F64         0: devices are used as if they had no f64
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/backend/opencl/api.h"

namespace tessera::opencl {

struct DeviceInfo {
  DeviceId id = nullptr;
  bool is_gpu = false;
  std::string name, version, driver;
  int64_t compute_units = 0;
  int64_t memory_bytes = 0, largest_buffer = 0, local_bytes = 0;
  int64_t largest_group = 0;
  int alignment = 0;  // of sub-buffers, bytes
  bool has_f64 = false;
  bool divides_exactly = false;  // can round quotients and roots correctly
};

struct Devices {
  std::vector<DeviceInfo> list;  // GPUs first, then in the order of platforms
  std::string absent;            // why the list is empty
};

// Looks for devices anew: those of OpenCL 1.2 and up that are available and have a compiler.
Devices find_devices(const Library& library, int sub_devices, bool use_f64);

// TESSERA_OPENCL_SUBDEVICES as a number; 1 where it is null or empty.
int sub_devices_asked(const char* text);

// The process-wide list, as the environment asks.
const Devices& devices();

// "NVIDIA H200, 132 compute units, OpenCL 3.0 CUDA, driver 550.54"
std::string describe(const DeviceInfo& device);

}  // namespace tessera::opencl
