// Generated kernels over long rows, beside the CPU.
#include <utility>

#include "cuda_stand_in/stand_in_test.h"
#include "support/device_work.h"
#include "tessera/backend/gpu/generated_kernel.h"

namespace tessera::test {
namespace {

class CudaLongRows : public OnStandIn<> {};

constexpr int64_t kLongRows = 9;

size_t clusters_started() { return stand_in<size_t()>(STAND_IN_DRIVER, "stand_in_clusters")(); }

TEST_F(CudaLongRows, AreSharedByClusters) {
  // Those that begin anywhere only where nothing is read beside them.
  const size_t before = clusters_started();
  check_long_rows(kCuda, kLongRows, 50257, true);
  const size_t between = clusters_started();
  EXPECT_EQ(between - before, size_t(2 * kLongRows));
  check_long_rows(kCuda, kLongRows, 32768, true);
  EXPECT_EQ(clusters_started() - between, size_t(2 * kLongRows));  // of f32
}

// More of them than groups run at once, in local memory.
TEST_F(CudaLongRows, AreAGroupsEachWithoutClusters) {
  const size_t before = clusters_started();
  const int64_t groups = std::exchange(gpu::tuning().cluster_groups, 1);
  check_long_rows(kCuda, kLongRows, 50259, true);  // not compiled yet
  gpu::tuning().cluster_groups = groups;
  EXPECT_EQ(clusters_started(), before);
}

}  // namespace
}  // namespace tessera::test
