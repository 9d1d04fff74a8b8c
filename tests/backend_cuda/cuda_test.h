// Tests that need a real card.
#pragma once

#include <gtest/gtest.h>

#include "tessera/runtime/registry.h"
#include "tessera/tensor/device.h"

namespace tessera::test {

inline const Device kCuda = {DeviceKind::cuda, 0};

template <class Base = ::testing::Test>
class OnCuda : public Base {
 protected:
  void SetUp() override {
    const std::string reason = why_absent(DeviceKind::cuda);
    if (!reason.empty()) GTEST_SKIP() << "no CUDA device: " << reason;
    set_default_device(kCuda);
  }
  void TearDown() override { set_default_device(DeviceKind::cpu); }
};

}  // namespace tessera::test
