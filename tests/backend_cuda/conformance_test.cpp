// The conformance table on a real card.
#include "support/device_conformance.h"
#include "tessera/runtime/registry.h"
#include "tessera/tensor/device.h"

namespace tessera::test {
namespace {

class CudaConformance : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    const std::string reason = why_absent(DeviceKind::cuda);
    if (!reason.empty()) GTEST_SKIP() << "no CUDA device: " << reason;
    set_default_device(DeviceKind::cuda);
  }
  void TearDown() override { set_default_device(DeviceKind::cpu); }
};

TEST_P(CudaConformance, Value) { check_values(GetParam()); }
TEST_P(CudaConformance, Fusion) { check_fusion(GetParam()); }
TEST_P(CudaConformance, Gradient) { check_gradients(GetParam()); }

INSTANTIATE_TEST_SUITE_P(Slice, CudaConformance, ::testing::Range(0, kConformanceSlices));

}  // namespace
}  // namespace tessera::test
