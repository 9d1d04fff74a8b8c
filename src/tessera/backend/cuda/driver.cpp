#include "tessera/backend/cuda/driver.h"

#include <cstdlib>

#include "tessera/backend/cuda/libraries.h"
#include "tessera/base/error.h"

namespace tessera::cuda {

DriverLibrary open_driver(const char* name) {
  const std::optional<SharedLibrary> library = open_library({&name, 1});
  if (!library) return {std::nullopt, cat(name, " not found")};
  Driver d = {};
  const char* missing = nullptr;
  auto find = [&]<class F>(F*& function, const char* symbol) {
    function = library->function<F>(symbol);
    if (function == nullptr && missing == nullptr) missing = symbol;
  };
  find(d.init, "cuInit");
  find(d.error_name, "cuGetErrorName");
  find(d.error_string, "cuGetErrorString");
  find(d.device_get, "cuDeviceGet");
  find(d.device_attribute, "cuDeviceGetAttribute");
  find(d.context_retain, "cuDevicePrimaryCtxRetain");
  find(d.context_set, "cuCtxSetCurrent");
  find(d.mem_info, "cuMemGetInfo_v2");
  find(d.mem_alloc, "cuMemAlloc_v2");
  find(d.mem_free, "cuMemFree_v2");
  find(d.host_alloc, "cuMemHostAlloc");
  find(d.host_free, "cuMemFreeHost");
  find(d.host_address, "cuMemHostGetDevicePointer_v2");
  find(d.address_reserve, "cuMemAddressReserve");
  find(d.address_free, "cuMemAddressFree");
  find(d.mem_granularity, "cuMemGetAllocationGranularity");
  find(d.mem_create, "cuMemCreate");
  find(d.mem_release, "cuMemRelease");
  find(d.mem_map, "cuMemMap");
  find(d.mem_unmap, "cuMemUnmap");
  find(d.mem_access, "cuMemSetAccess");
  find(d.copy_to_device, "cuMemcpyHtoDAsync_v2");
  find(d.copy_to_host, "cuMemcpyDtoHAsync_v2");
  find(d.copy, "cuMemcpyDtoDAsync_v2");
  find(d.fill, "cuMemsetD32Async");
  find(d.stream_create, "cuStreamCreate");
  find(d.stream_destroy, "cuStreamDestroy_v2");
  find(d.stream_synchronize, "cuStreamSynchronize");
  find(d.begin_capture, "cuStreamBeginCapture_v2");
  find(d.end_capture, "cuStreamEndCapture");
  find(d.event_create, "cuEventCreate");
  find(d.event_destroy, "cuEventDestroy_v2");
  find(d.event_record, "cuEventRecord");
  find(d.event_synchronize, "cuEventSynchronize");
  find(d.event_elapsed, "cuEventElapsedTime");
  find(d.module_load, "cuModuleLoadData");
  find(d.module_unload, "cuModuleUnload");
  find(d.module_function, "cuModuleGetFunction");
  find(d.function_attribute, "cuFuncGetAttribute");
  find(d.set_function_attribute, "cuFuncSetAttribute");
  find(d.occupancy, "cuOccupancyMaxActiveBlocksPerMultiprocessor");
  find(d.launch, "cuLaunchKernelEx");
  find(d.graph_instantiate, "cuGraphInstantiateWithFlags");
  find(d.graph_launch, "cuGraphLaunch");
  find(d.graph_exec_destroy, "cuGraphExecDestroy");
  find(d.graph_destroy, "cuGraphDestroy");
  if (missing != nullptr) {
    return {std::nullopt, cat(name, " has no ", missing, ": the driver is too old")};
  }
  return {d, ""};
}

const DriverLibrary& driver_library() {
  static const DriverLibrary instance = [] {
    const char* asked = std::getenv("TESSERA_CUDA_LIBRARY");
    return open_driver(asked != nullptr && *asked != '\0' ? asked : "libcuda.so.1");
  }();
  return instance;
}

const Driver& driver() { return *driver_library().driver; }

std::string to_text(Result result) {
  const char* text = nullptr;
  if (driver().error_string(result, &text) != kSuccess || text == nullptr) text = "unknown error";
  return cat(text, " (", result, ")");
}

void expect_success(Result result, const char* what) {
  if (result != kSuccess) fail("CUDA: ", what, " failed: ", to_text(result));
}

}  // namespace tessera::cuda
