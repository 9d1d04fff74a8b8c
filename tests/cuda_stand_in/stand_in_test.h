// Tests of the CUDA backend on a driver and a compiler that run kernels on the host.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include "tessera/backend/cuda/cuda_backend.h"
#include "tessera/runtime/registry.h"
#include "tessera/tensor/device.h"

namespace tessera::test {

inline const Device kCuda = {DeviceKind::cuda, 0};

template <class Base = ::testing::Test>
class OnStandIn : public Base {
 protected:
  void SetUp() override {
#ifdef TESSERA_EMULATED
    GTEST_SKIP() << "the compiler is not one of the emulated machine";
#elif defined(__SANITIZE_ADDRESS__)
    GTEST_SKIP() << "lanes that take turns on stacks of their own confuse the sanitizer";
#endif
    ASSERT_EQ(cuda_absent(), "");
    set_default_device(kCuda);
  }
  void TearDown() override { set_default_device(DeviceKind::cpu); }
};

// A function of a stand-in.
template <class Signature>
Signature* stand_in(const char* path, const char* function) {
  void* const library = ::dlopen(path, RTLD_NOW | RTLD_NOLOAD);
  return reinterpret_cast<Signature*>(::dlsym(library, function));
}

// Tells a stand-in to misbehave.
inline void tell(const char* path, const char* function, bool on) {
  stand_in<void(bool)>(path, function)(on);
}

}  // namespace tessera::test
