// Which backends exist, and calling one of their named kernels without a graph.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tessera/base/device.h"
#include "tessera/runtime/backend.h"

namespace tessera {

// A way to reach devices of one kind.
struct BackendFactory {
  std::function<int()> count;  // devices present
  std::function<std::unique_ptr<Backend>(int index)> make;
  std::function<std::string()> why_absent =
      nullptr;  // in one sentence; needed where count() may be 0
};

// A second registration of a kind is ignored, so that init() may be called again.
void register_backend(DeviceKind kind, BackendFactory factory);

// The kinds registered, whether or not such a device is present.
std::vector<DeviceKind> backend_kinds();

// Why there is no device of this kind: "libOpenCL.so.1 not found". Empty where there is one.
std::string why_absent(DeviceKind kind);

// Every device of every registered kind.
std::vector<Device> available_devices();

// The backend of a device, made on first use. Throws when there is none: "Failed to initialize CUDA
// device 99: 1 device found".
Backend& backend(Device device);

// TESSERA_DEVICE, or the first CUDA device, or the CPU. Throws when TESSERA_DEVICE names none that
// is there.
Device preferred_device();

// Runs one kernel over buffers, now: for callers that cannot pay for a graph. Compiled kernels are
// not kept; hold the Executable of Backend::compile to call again and again.
void call_kernel(Backend& backend, const KernelCall& call, std::span<const Buffer> operands);

}  // namespace tessera
