// Tests that need an OpenCL device; without one they are skipped, with the reason.
#pragma once

#include <gtest/gtest.h>

#include "tessera/backend/opencl/opencl_backend.h"
#include "tessera/runtime/registry.h"
#include "tessera/tensor/device.h"

namespace tessera::test {

// The name of the first device.
inline const Device kOpenCl = {DeviceKind::opencl, 0};

inline Backend& opencl_device() { return backend(kOpenCl); }

// Tensors are made on the first OpenCL device for the time of a test.
template <class Base = ::testing::Test>
class OnOpenCl : public Base {
 protected:
  void SetUp() override {
    if (opencl_device_count() == 0) GTEST_SKIP() << "no OpenCL device: " << opencl_absent();
    set_default_device(kOpenCl);
  }
  void TearDown() override { set_default_device(DeviceKind::cpu); }
};

}  // namespace tessera::test
