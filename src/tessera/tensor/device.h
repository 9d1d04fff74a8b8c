// The devices that tensors live on, with what the process keeps for each: allocator, kernels,
// arena.
#pragma once

#include <span>

#include "tessera/base/device.h"
#include "tessera/exec/executor.h"
#include "tessera/graph/node.h"
#include "tessera/runtime/caching_allocator.h"

namespace tessera {

struct DeviceContext {
  DeviceContext(Device device_, Backend& backend_)
      : device(device_), backend(backend_), allocator(backend_), exec(backend_) {}

  const Device device;
  Backend& backend;
  CachingAllocator allocator;
  ExecContext exec;
};

// Made on first use. Throws when there is no such device, or when tessera::init() has not been
// called.
DeviceContext& device_context(Device device);

// Where tensors without operands are made: what set_default_device() said, else TESSERA_DEVICE,
// else the first CUDA device, else the CPU.
Device default_device();
void set_default_device(Device device);  // for the whole process; throws when it is not there

// `found` becomes `other` where it is null; throws where both are devices and differ.
void join_devices(DeviceContext*& found, DeviceContext* other);

// The device that the evaluated values of an expression are on; the default one where there are
// none. Throws where they are on several.
DeviceContext& device_of(std::span<const Value> roots);

}  // namespace tessera
