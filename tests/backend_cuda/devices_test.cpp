#include "tessera/backend/cuda/devices.h"

#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/fake_cuda.h"
#include "tessera/runtime/registry.h"

namespace tessera::cuda {
namespace {

TEST(CudaDevices, AreWhatTheDriverKnows) {
  const TempFolder folder;
  const Devices found = find_devices(make_fake_cuda(folder, 0, 2).c_str());
  EXPECT_EQ(found.absent, "");
  ASSERT_EQ(found.list.size(), 2u);
  EXPECT_EQ(describe(found.list[0], found.driver),
            "Card 7, 132 multiprocessors, compute capability 9.1, driver for CUDA 12.8");
  EXPECT_EQ(found.list[0].memory_bytes, int64_t(1) << 30);
  EXPECT_EQ(found.list[1].name, "Card 8");
  EXPECT_EQ(found.list[1].memory_bytes, int64_t(1) << 31);
}

TEST(CudaDevices, TheirAbsenceHasAReason) {
  const TempFolder folder;
  EXPECT_EQ(find_devices("libno_such_driver.so.1").absent, "libno_such_driver.so.1 not found");
  EXPECT_EQ(find_devices("libm.so.6").absent, "libm.so.6 has no cuInit");
  EXPECT_EQ(find_devices(make_fake_cuda(folder, 100, 2).c_str()).absent, "driver found, no device");
  const TempFolder second, third;  // a library is loaded once by its path
  EXPECT_EQ(find_devices(make_fake_cuda(second, 0, 0).c_str()).absent, "driver found, no device");
  EXPECT_EQ(find_devices(make_fake_cuda(third, 999, 2).c_str()).absent,
            "driver found, but it answers error 999");
}

TEST(CudaBackend, ItsAbsenceHasAReason) {
  EXPECT_EQ(why_absent(DeviceKind::cpu), "");
  const std::string reason = why_absent(DeviceKind::cuda);
  if (reason.empty()) GTEST_SKIP() << "there is a CUDA device";
  EXPECT_EQ(error_text([] { backend("cuda:0"); }), "Failed to initialize CUDA device 0: " + reason);
}

}  // namespace
}  // namespace tessera::cuda
