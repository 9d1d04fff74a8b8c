// Small sizes of what tests/backend_cuda does on a real card.
#include "cuda_stand_in/stand_in_test.h"
#include "support/device_work.h"

namespace tessera::test {
namespace {

class CudaWork : public OnStandIn<> {};

TEST_F(CudaWork, TrainsAnMlpLikeTheCpu) { check_training(train_mlp, kCuda); }
TEST_F(CudaWork, ReluTakesItsProductAlong) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) check_relu(dtype);
}
TEST_F(CudaWork, ReplaysManySmallKernels) { check_replay(kCuda, 200); }
TEST_F(CudaWork, MapsAndSums) { check_map_and_sum(100'003); }
TEST_F(CudaWork, Indices) { check_index_select(100'003); }
TEST_F(CudaWork, TakesMemoryAndGivesItBack) { check_memory(kCuda, int64_t(9) << 20); }

}  // namespace
}  // namespace tessera::test
