// The conformance table on a real card.
#include "backend_cuda/cuda_test.h"
#include "support/device_conformance.h"

namespace tessera::test {
namespace {

class CudaConformance : public OnCuda<::testing::TestWithParam<int>> {};

TEST_P(CudaConformance, Value) { check_values(GetParam()); }
TEST_P(CudaConformance, Fusion) { check_fusion(GetParam()); }
TEST_P(CudaConformance, Gradient) { check_gradients(GetParam()); }

INSTANTIATE_TEST_SUITE_P(Slice, CudaConformance, ::testing::Range(0, kConformanceSlices));

}  // namespace
}  // namespace tessera::test
