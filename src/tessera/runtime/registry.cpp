#include "tessera/runtime/registry.h"

#include <cstdlib>
#include <map>
#include <mutex>

namespace tessera {

namespace {

struct Entry {
  BackendFactory factory;
  std::map<int, std::unique_ptr<Backend>> made;  // by index
};

struct Registry {
  std::mutex mutex;
  std::map<DeviceKind, Entry> entries;
};

// Never destroyed: buffers held by objects of static storage return to their backend after main().
Registry& registry() {
  static Registry* const instance = new Registry;
  return *instance;
}

template <class... Args>
[[noreturn]] void fail_initialize(Device device, const Args&... reason) {
  fail("Failed to initialize ", vendor_name(device.kind), " device ", device.index, ": ",
       reason...);
}

std::string no_backend(DeviceKind kind) {
  return cat("this build has no ", vendor_name(kind), " backend");
}

std::string absence(const BackendFactory& factory) {
  return factory.count() > 0 ? "" : factory.why_absent();
}

}  // namespace

void register_backend(DeviceKind kind, BackendFactory factory) {
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  r.entries.try_emplace(kind, Entry{std::move(factory), {}});
}

std::vector<DeviceKind> backend_kinds() {
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  std::vector<DeviceKind> kinds;
  for (const auto& [kind, entry] : r.entries) kinds.push_back(kind);
  return kinds;
}

std::string why_absent(DeviceKind kind) {
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  const auto found = r.entries.find(kind);
  return found == r.entries.end() ? no_backend(kind) : absence(found->second.factory);
}

std::vector<Device> available_devices() {
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  std::vector<Device> devices;
  for (const auto& [kind, entry] : r.entries) {
    for (int i = 0; i < entry.factory.count(); ++i) devices.push_back({kind, i});
  }
  return devices;
}

Backend& backend(Device device) {
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  if (r.entries.empty()) fail("backend: none is registered: call tessera::init() first");
  const auto found = r.entries.find(device.kind);
  if (found == r.entries.end()) fail_initialize(device, no_backend(device.kind));
  Entry& entry = found->second;
  const int count = entry.factory.count();
  if (count == 0) fail_initialize(device, absence(entry.factory));
  if (device.index >= count) {
    fail_initialize(device, count, count == 1 ? " device" : " devices", " found");
  }
  std::unique_ptr<Backend>& made = entry.made[device.index];
  if (made == nullptr) made = entry.factory.make(device.index);
  return *made;
}

Device preferred_device() {
  if (const char* asked = std::getenv("TESSERA_DEVICE"); asked != nullptr && *asked != 0) {
    try {
      const Device device(asked);
      backend(device);
      return device;
    } catch (const Error& error) {
      fail("TESSERA_DEVICE: ", error.what());
    }
  }
  // Other kinds are not asked: looking for OpenCL devices loads drivers, which takes long.
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  const auto cuda = r.entries.find(DeviceKind::cuda);
  const bool has_cuda = cuda != r.entries.end() && cuda->second.factory.count() > 0;
  return has_cuda ? DeviceKind::cuda : DeviceKind::cpu;
}

void call_kernel(Backend& backend, const KernelCall& call, std::span<const Buffer> operands) {
  if (operands.size() != call.operands.size()) {
    fail("call_kernel: expected ", call.operands.size(), " buffers, got ", operands.size());
  }
  const std::unique_ptr<Executable> executable = backend.compile(call);
  std::vector<BufferRef> refs;
  for (const Buffer& buffer : operands) refs.push_back(ref(buffer));
  const int64_t extent0 = call.ir ? call.ir->extents[0] : 0;
  backend.launch(*executable, refs, extent0, Stream{});
  backend.synchronize(Stream{});
}

}  // namespace tessera
