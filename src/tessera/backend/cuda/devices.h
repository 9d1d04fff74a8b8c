// The CUDA devices that the driver knows. The driver is opened at run time: no vendor's header, and
// absent is an expected case.
//
//   TESSERA_CUDA_LIBRARY  the library to open instead of libcuda.so.1
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tessera::cuda {

struct DeviceInfo {
  std::string name;
  int64_t memory_bytes = 0;
  int64_t cache_bytes = 0;  // of the second level
  int multiprocessors = 0;
  int major = 0, minor = 0;  // compute capability
};

struct Devices {
  int driver = 0;                // the CUDA version the driver offers, 1000 * major + 10 * minor
  std::vector<DeviceInfo> list;  // in the driver's order
  std::string absent;            // why the list is empty, in one sentence
};

// Asks the driver in this library.
Devices find_devices(const char* library);

// The process-wide list, as the environment asks.
const Devices& devices();

// "NVIDIA H200, 132 multiprocessors, compute capability 9.0, driver for CUDA 13.0"
std::string describe(const DeviceInfo& device, int driver);

}  // namespace tessera::cuda
