// The device that tensors live on, with what the process keeps for it: allocator, kernels, arena.
#pragma once

#include "tessera/exec/executor.h"
#include "tessera/runtime/caching_allocator.h"

namespace tessera {

struct DeviceContext {
  explicit DeviceContext(Backend& backend_)
      : backend(backend_), allocator(backend_), exec(backend_) {}

  Backend& backend;
  CachingAllocator allocator;
  ExecContext exec;
};

// The CPU's context, made on first use. Throws when tessera::init() has registered no backend.
DeviceContext& device_context();

}  // namespace tessera
