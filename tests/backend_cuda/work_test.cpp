// What only a real card can hold, and training beside the CPU.
#include "backend_cuda/cuda_test.h"
#include "support/device_work.h"
#include "tessera/runtime/caching_allocator.h"

namespace tessera::test {
namespace {

constexpr int64_t kMany = (int64_t(1) << 31) + 12'345;
constexpr int64_t kGiB = int64_t(1) << 30;

// Why a test that takes so many bytes cannot run; empty: it can.
std::string too_small(int64_t bytes) {
  release_cached_memory();
  const int64_t free = *backend(kCuda).free_bytes();
  if (bytes <= free) return "";
  return cat("it needs ", bytes / kGiB, " GiB on the card, ", free / kGiB, " are free");
}

class CudaWork : public OnCuda<> {};

TEST_F(CudaWork, TrainsAnMlpLikeTheCpu) { check_training(train_mlp, kCuda); }
TEST_F(CudaWork, TrainsAGptLikeTheCpu) { check_training(train_gpt, kCuda); }
TEST_F(CudaWork, ReluTakesItsProductAlong) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) check_relu(dtype);
}
TEST_F(CudaWork, ReplaysManySmallKernels) { check_replay(kCuda, 200); }

// Rows that a cluster of two, four or eight groups shares, and longer ones.
class CudaLongRows : public OnCuda<::testing::TestWithParam<int64_t>> {};

TEST_P(CudaLongRows, AreLikeTheCpu) {
  for (const bool generated : {false, true}) check_long_rows(kCuda, 200, GetParam(), generated);
}

INSTANTIATE_TEST_SUITE_P(Columns, CudaLongRows,
                         ::testing::Values(16385, 20011, 32768, 50257, 65537, 131072, 131075));

// These take much of the card: tests/CMakeLists.txt has them run alone.
class CudaCard : public OnCuda<> {};

TEST_F(CudaCard, MapsAndSumsOfMoreThan31Bits) {
  const std::string reason = too_small(4 * kMany + kGiB);
  if (!reason.empty()) GTEST_SKIP() << reason;
  check_map_and_sum(kMany);
}

TEST_F(CudaCard, IndicesOfMoreThan31Bits) {
  const std::string reason = too_small(kMany + kGiB);
  if (!reason.empty()) GTEST_SKIP() << reason;
  check_index_select(kMany);
}

// 95 % of the card's memory, what others hold counted.
TEST_F(CudaCard, NearlyAllOfTheMemory) {
  release_cached_memory();
  const int64_t total = backend(kCuda).target().memory_bytes, free = *backend(kCuda).free_bytes();
  const int64_t bytes = total / 100 * 95 - (total - free);
  if (bytes < total / 2) GTEST_SKIP() << "others use " << (total - free) / kGiB << " GiB of it";
  check_memory(kCuda, bytes);
}

}  // namespace
}  // namespace tessera::test
