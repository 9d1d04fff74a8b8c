#include "backend_opencl/opencl_test.h"
#include "support/device_conformance.h"
#include "tessera/runtime/counters.h"

namespace tessera::test {
namespace {

class OpenClConformance : public OnOpenCl<::testing::TestWithParam<int>> {
 protected:
  void SetUp() override {
    OnOpenCl::SetUp();
    compiled_ = counters().snapshot().compiles;
  }
  void TearDown() override {
    RecordProperty("kernels", int(counters().snapshot().compiles - compiled_));
    OnOpenCl::TearDown();
  }

 private:
  int64_t compiled_ = 0;
};

TEST_P(OpenClConformance, Value) { check_values(GetParam()); }
TEST_P(OpenClConformance, Fusion) { check_fusion(GetParam()); }
TEST_P(OpenClConformance, Gradient) { check_gradients(GetParam()); }

INSTANTIATE_TEST_SUITE_P(Slice, OpenClConformance, ::testing::Range(0, kConformanceSlices));

}  // namespace
}  // namespace tessera::test
