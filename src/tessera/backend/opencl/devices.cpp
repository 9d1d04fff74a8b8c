#include "tessera/backend/opencl/devices.h"

#include <algorithm>
#include <cstdlib>

#include "tessera/base/error.h"

namespace tessera::opencl {

namespace {

constexpr Flags kCpu = 2, kGpu = 4;
constexpr Status kNoPlatform = -1001;

enum Info : uint32_t {
  kType = 0x1000,
  kComputeUnits = 0x1002,
  kLargestGroup = 0x1004,
  kLargestBuffer = 0x1010,
  kBaseAlignment = 0x1019,  // bits
  kFloatConfig = 0x101B,
  kMemory = 0x101F,
  kLocalMemory = 0x1023,
  kAvailable = 0x1027,
  kHasCompiler = 0x1028,
  kName = 0x102B,
  kDriver = 0x102D,
  kVersion = 0x102F,
  kDoubleConfig = 0x1032,
};
constexpr Flags kCorrectlyRoundedDivide = 1 << 7;

template <class T>
T query(const Api& api, DeviceId device, Info what) {
  T value = {};
  api.get_device_info(device, what, sizeof value, &value, nullptr);
  return value;
}

std::string query_text(const Api& api, DeviceId device, Info what) {
  size_t size = 0;
  api.get_device_info(device, what, 0, nullptr, &size);
  std::string text(size, ' ');
  api.get_device_info(device, what, size, text.data(), nullptr);
  while (!text.empty() && (text.back() == 0 || text.back() == ' ')) text.pop_back();
  return text;
}

// "OpenCL 3.0 …"
bool is_at_least_1_2(const std::string& version) {
  int major = 0, minor = 0;
  if (std::sscanf(version.c_str(), "OpenCL %d.%d", &major, &minor) != 2) return false;
  return major > 1 || (major == 1 && minor >= 2);
}

DeviceInfo inspect(const Api& api, DeviceId device, bool use_f64) {
  DeviceInfo info;
  info.id = device;
  info.is_gpu = (query<Flags>(api, device, kType) & kGpu) != 0;
  info.name = query_text(api, device, kName);
  info.version = query_text(api, device, kVersion);
  info.driver = query_text(api, device, kDriver);
  info.compute_units = query<uint32_t>(api, device, kComputeUnits);
  info.memory_bytes = int64_t(query<uint64_t>(api, device, kMemory));
  info.largest_buffer = int64_t(query<uint64_t>(api, device, kLargestBuffer));
  info.local_bytes = int64_t(query<uint64_t>(api, device, kLocalMemory));
  info.largest_group = int64_t(query<size_t>(api, device, kLargestGroup));
  info.alignment = std::max(64, int(query<uint32_t>(api, device, kBaseAlignment) / 8));
  info.has_f64 = use_f64 && query<Flags>(api, device, kDoubleConfig) != 0;
  info.divides_exactly = (query<Flags>(api, device, kFloatConfig) & kCorrectlyRoundedDivide) != 0;
  return info;
}

// The parts of a device; itself where it cannot be divided so.
std::vector<DeviceId> divide(const Api& api, DeviceId device, int parts) {
  const uint32_t units = query<uint32_t>(api, device, kComputeUnits),
                 each = units / uint32_t(parts);
  const Property equally[] = {kPartitionEqually, Property(each), 0};
  std::vector<DeviceId> found(units);
  const bool divided =
      parts > 1 && each > 0 &&
      api.create_sub_devices(device, equally, units, found.data(), nullptr) == kSuccess;
  if (!divided) return {device};
  found.resize(size_t(parts));  // a remainder made a further part
  return found;
}

}  // namespace

Devices find_devices(const Library& library, int sub_devices, bool use_f64) {
  if (!library.api) return {{}, library.absent};
  const Api& api = *library.api;
  uint32_t count = 0;
  const Status status = api.get_platform_ids(0, nullptr, &count);
  if (status == kNoPlatform || (status == kSuccess && count == 0)) return {{}, "no platform"};
  if (status != kSuccess) return {{}, cat("the platforms cannot be listed: ", to_text(status))};
  std::vector<PlatformId> platforms(count);
  api.get_platform_ids(count, platforms.data(), nullptr);
  Devices result;
  for (const PlatformId platform : platforms) {
    for (const Flags kind : {kGpu, kCpu}) {
      uint32_t devices = 0;
      if (api.get_device_ids(platform, kind, 0, nullptr, &devices) != kSuccess) continue;
      std::vector<DeviceId> ids(devices);
      api.get_device_ids(platform, kind, devices, ids.data(), nullptr);
      for (const DeviceId whole : ids) {
        for (const DeviceId id :
             kind == kCpu ? divide(api, whole, sub_devices) : std::vector{whole}) {
          if (query<uint32_t>(api, id, kAvailable) == 0) continue;
          if (query<uint32_t>(api, id, kHasCompiler) == 0) continue;
          const DeviceInfo info = inspect(api, id, use_f64);
          if (is_at_least_1_2(info.version)) result.list.push_back(info);
        }
      }
    }
  }
  std::stable_partition(result.list.begin(), result.list.end(),
                        [](const DeviceInfo& info) { return info.is_gpu; });
  if (result.list.empty()) result.absent = "no device of OpenCL 1.2 and up";
  return result;
}

int sub_devices_asked(const char* asked) {
  if (asked == nullptr || *asked == 0) return 1;
  char* end = nullptr;
  const long count = std::strtol(asked, &end, 10);
  if (*end != 0 || count < 1 || count > 1024) {
    fail("TESSERA_OPENCL_SUBDEVICES: expected a number from 1 to 1024, got '", asked, "'");
  }
  return int(count);
}

const Devices& devices() {
  // Never destroyed: parts of a device are the process's until it ends.
  static const Devices& instance = *new Devices([] {
    const char* f64 = std::getenv("TESSERA_OPENCL_F64");
    const bool use_f64 = f64 == nullptr || std::string_view(f64) != "0";
    return find_devices(library(), sub_devices_asked(std::getenv("TESSERA_OPENCL_SUBDEVICES")),
                        use_f64);
  }());
  return instance;
}

std::string describe(const DeviceInfo& device) {
  return cat(device.name, ", ", device.compute_units,
             device.compute_units == 1 ? " compute unit, " : " compute units, ", device.version,
             ", driver ", device.driver, device.has_f64 ? "" : ", no f64");
}

}  // namespace tessera::opencl
