#include "tessera/runtime/registry.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "runtime/fake_backend.h"
#include "support/expect_error.h"
#include "tessera/runtime/counters.h"
#include "tessera/runtime/shared_library.h"

namespace tessera::test {
namespace {

int g_made = 0;

BackendFactory fakes(int count, int& made) {
  return {[count] { return count; },
          [&made](int) {
            ++made;
            return std::make_unique<FakeBackend>(100);
          }};
}

// Before init(), which then leaves CUDA alone.
[[maybe_unused]] const bool kRegistered = [] {
  register_backend(DeviceKind::cuda, fakes(2, g_made));
  return true;
}();

TEST(Registry, MakesABackendAtFirstUseAndOnce) {
  const int& made = g_made;
  int ignored = 0;
  register_backend(DeviceKind::cuda, fakes(5, ignored));
  EXPECT_EQ(made, 0);
  Backend& first = backend("cuda:1");
  EXPECT_EQ(&backend("cuda:1"), &first);
  EXPECT_EQ(made, 1);
  EXPECT_NE(&backend("cuda"), &first);
  EXPECT_EQ(made, 2);
  EXPECT_EQ(ignored, 0);
  const std::vector<Device> devices = available_devices();
  EXPECT_EQ(std::count(devices.begin(), devices.end(), Device("cuda:1")), 1);
  EXPECT_EQ(std::count(devices.begin(), devices.end(), Device("cuda:2")), 0);
}

TEST(Registry, SaysWhichDeviceIsNotThere) {
  EXPECT_EQ(error_text([] { backend("cuda:7"); }),
            "Failed to initialize CUDA device 7: 2 devices found");
  EXPECT_EQ(error_text([] { backend("cpu:1"); }),
            "Failed to initialize CPU device 1: 1 device found");
}

TEST(Registry, PrefersWhatTheEnvironmentAsksFor) {
  const char* before = std::getenv("TESSERA_DEVICE");
  const std::string saved = before == nullptr ? "" : before;
  setenv("TESSERA_DEVICE", "cuda:1", 1);
  EXPECT_EQ(preferred_device(), Device("cuda:1"));
  setenv("TESSERA_DEVICE", "cuda:2", 1);
  EXPECT_EQ(error_text([] { preferred_device(); }),
            "TESSERA_DEVICE: Failed to initialize CUDA device 2: 2 devices found");
  setenv("TESSERA_DEVICE", "gpu", 1);
  EXPECT_EQ(error_text([] { preferred_device(); }),
            "TESSERA_DEVICE: device: expected cpu, cuda:N or opencl:N, got 'gpu'");
  setenv("TESSERA_DEVICE", "", 1);
  EXPECT_EQ(preferred_device(), Device("cuda:0"));
  before == nullptr ? unsetenv("TESSERA_DEVICE") : setenv("TESSERA_DEVICE", saved.c_str(), 1);
}

TEST(CallKernel, PassesOperandsAndTheFirstExtent) {
  FakeBackend fake(100);
  KernelCall call;
  call.ir = std::make_shared<KernelIR>(KernelIR{"k", {7, 3}, 1, {}, {}});
  call.operands.resize(2, {DType::f32, {}});
  call_kernel(fake, call, std::vector<Buffer>(2));
  EXPECT_EQ(fake.last_operands, 2);
  EXPECT_EQ(fake.last_extent, 7);
}

TEST(Counters, PeakFollowsTheGreatestUse) {
  Counters c;
  c.add_allocation(100);
  c.add_allocation(50);
  c.add_release(100);
  c.add_allocation(20);
  const CounterValues v = c.snapshot();
  EXPECT_EQ(v.allocations, 3);
  EXPECT_EQ(v.bytes_in_use, 70);
  EXPECT_EQ(v.peak_bytes, 150);
}

TEST(SharedLibrary, FindsFunctionsAndReportsAbsence) {
  constexpr const char* kAbsent[] = {"libtessera-does-not-exist.so.1"};
  EXPECT_FALSE(SharedLibrary::open(kAbsent).has_value());
  constexpr const char* kMath[] = {"libtessera-does-not-exist.so.1", "libm.so.6"};
  const auto math = SharedLibrary::open(kMath);
  ASSERT_TRUE(math.has_value());
  EXPECT_EQ(math->name(), "libm.so.6");
  auto* cosine = math->function<double(double)>("cos");
  ASSERT_NE(cosine, nullptr);
  EXPECT_EQ(cosine(0), 1);
  EXPECT_EQ(math->function<double(double)>("no_such_function"), nullptr);
}

}  // namespace
}  // namespace tessera::test
