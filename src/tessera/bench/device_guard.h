// Where tensors are made while it lives.
#pragma once

#include "tessera/tensor/device.h"

namespace tessera::bench {

class DeviceGuard {
 public:
  explicit DeviceGuard(Device device) : previous_(default_device()) { set_default_device(device); }
  ~DeviceGuard() { set_default_device(previous_); }
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;

 private:
  Device previous_;
};

}  // namespace tessera::bench
