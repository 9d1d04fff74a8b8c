#include "tessera/tensor/device.h"

#include <map>
#include <mutex>
#include <optional>

#include "tessera/graph/scope.h"
#include "tessera/runtime/registry.h"
#include "tessera/tensor/storage.h"

namespace tessera {

namespace {

struct Contexts {
  std::mutex mutex;
  std::map<std::pair<DeviceKind, int>, DeviceContext*> made;
  std::optional<Device> chosen;
};

// Leaked on purpose: tensors in statics of the program may outlive any order of destruction.
Contexts& contexts() {
  static auto* instance = new Contexts;
  return *instance;
}

// The only one so far, or null.
DeviceContext* single_context() {
  Contexts& c = contexts();
  const std::lock_guard lock(c.mutex);
  return c.made.size() == 1 ? c.made.begin()->second : nullptr;
}

}  // namespace

DeviceContext& device_context(Device device) {
  Contexts& c = contexts();
  const std::lock_guard lock(c.mutex);
  DeviceContext*& context = c.made[{device.kind, device.index}];
  if (context == nullptr) {
    try {
      context = new DeviceContext(device, backend(device));
    } catch (...) {
      c.made.erase({device.kind, device.index});
      throw;
    }
  }
  return *context;
}

Device default_device() {
  Contexts& c = contexts();
  {
    const std::lock_guard lock(c.mutex);
    if (c.chosen) return *c.chosen;
  }
  const Device preferred = preferred_device();
  const std::lock_guard lock(c.mutex);
  if (!c.chosen) c.chosen = preferred;
  return *c.chosen;
}

void set_default_device(Device device) {
  device_context(device);
  Contexts& c = contexts();
  const std::lock_guard lock(c.mutex);
  c.chosen = device;
}

void join_devices(DeviceContext*& found, DeviceContext* other) {
  if (found != nullptr && other != nullptr && found != other) {
    fail_here("the tensors of an expression are on ", found->device, " and ", other->device,
              ": move one with .to()");
  }
  if (found == nullptr) found = other;
}

DeviceContext& device_of(std::span<const Value> roots) {
  const Device otherwise = default_device();
  if (DeviceContext* only = single_context(); only != nullptr && only->device == otherwise) {
    return *only;
  }
  DeviceContext* found = nullptr;
  auto is_evaluated = [](const Node& node) { return value_slot(node, 0) != nullptr; };
  for (const NodePtr& node : topological_order(roots, is_evaluated)) {
    if (const auto slot = value_slot(*node, 0)) join_devices(found, slot->storage->device);
  }
  return found != nullptr ? *found : device_context(otherwise);
}

}  // namespace tessera
