#include "tessera/backend/cuda/devices.h"

#include <cstdlib>

#include "tessera/backend/cuda/libraries.h"
#include "tessera/base/error.h"

namespace tessera::cuda {

namespace {

using Result = int;
constexpr Result kSuccess = 0, kNoDevice = 100;

enum Attribute : int { kMultiprocessors = 16, kCacheBytes = 38, kMajor = 75, kMinor = 76 };

struct Api {
  Result (*init)(unsigned flags);
  Result (*driver_version)(int*);
  Result (*count)(int*);
  Result (*get)(int* device, int index);
  Result (*name)(char*, int bytes, int device);
  Result (*memory)(size_t*, int device);
  Result (*attribute)(int*, int what, int device);
};

// The name of the first function that is missing; null: all are there.
const char* open_functions(const SharedLibrary& library, Api& api) {
  const char* missing = nullptr;
  auto find = [&]<class F>(F*& function, const char* symbol) {
    function = library.function<F>(symbol);
    if (function == nullptr && missing == nullptr) missing = symbol;
  };
  find(api.init, "cuInit");
  find(api.driver_version, "cuDriverGetVersion");
  find(api.count, "cuDeviceGetCount");
  find(api.get, "cuDeviceGet");
  find(api.name, "cuDeviceGetName");
  find(api.memory, "cuDeviceTotalMem_v2");
  find(api.attribute, "cuDeviceGetAttribute");
  return missing;
}

DeviceInfo inspect(const Api& api, int index) {
  DeviceInfo info;
  int device = 0;
  char name[256] = "";
  size_t bytes = 0;
  int cache_bytes = 0;
  api.get(&device, index);
  api.name(name, sizeof name, device);
  api.memory(&bytes, device);
  api.attribute(&info.multiprocessors, kMultiprocessors, device);
  api.attribute(&cache_bytes, kCacheBytes, device);
  api.attribute(&info.major, kMajor, device);
  api.attribute(&info.minor, kMinor, device);
  info.name = name;
  info.memory_bytes = int64_t(bytes);
  info.cache_bytes = cache_bytes;
  return info;
}

}  // namespace

Devices find_devices(const char* name) {
  Devices found;
  const std::optional<SharedLibrary> library = open_library({&name, 1});
  if (!library) {
    found.absent = cat(name, " not found");
    return found;
  }
  Api api = {};
  if (const char* missing = open_functions(*library, api)) {
    found.absent = cat(name, " has no ", missing);
    return found;
  }
  api.driver_version(&found.driver);  // works without a device
  int count = 0;
  Result result = api.init(0);
  if (result == kSuccess) result = api.count(&count);
  if (result != kSuccess && result != kNoDevice) {
    found.absent = cat("driver found, but it answers error ", result);
  } else if (count == 0) {
    found.absent = "driver found, no device";
  }
  for (int i = 0; i < count; ++i) found.list.push_back(inspect(api, i));
  return found;
}

const Devices& devices() {
  static const Devices instance = [] {
    const char* asked = std::getenv("TESSERA_CUDA_LIBRARY");
    return find_devices(asked != nullptr && *asked != '\0' ? asked : "libcuda.so.1");
  }();
  return instance;
}

std::string describe(const DeviceInfo& device, int driver) {
  return cat(device.name, ", ", device.multiprocessors, " multiprocessors, compute capability ",
             device.major, ".", device.minor, ", driver for CUDA ", driver / 1000, ".",
             driver % 1000 / 10);
}

}  // namespace tessera::cuda
