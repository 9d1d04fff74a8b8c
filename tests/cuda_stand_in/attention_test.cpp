// Attention on the stand-in, which has no tensor cores: tiles, their limits and masks.
#include "cuda_stand_in/stand_in_test.h"
#include "support/device_attention.h"

namespace tessera::test {
namespace {

class CudaAttentionTest : public OnStandIn<> {};

TEST_F(CudaAttentionTest, TilesOfHalfTypes) {
  for (const AttentionSpec& x : std::initializer_list<AttentionSpec>{
           {1, 2, 2, 130, 130, 64, 64, true},
           {2, 2, 1, 70, 150, 64, 64, true, false, false, 0, DType::f16},
           {1, 2, 2, 150, 70, 32, 64, true},  // queries that see no key
           {1, 1, 1, 40, 130, 64, 128},
           {1, 1, 1, 33, 40, 72, 8, true, true},
           {3, 2, 2, 20, 70, 16, 16, false, false, true},
           {1, 2, 1, 65, 65, 64, 64, true, false, false, 0.25}}) {
    check_attention(x, kCuda, 0.015);
  }
}

TEST_F(CudaAttentionTest, TilesOfOtherTypes) {
  for (const AttentionSpec& spec : attention_tiles()) check_attention_tile(spec, kCuda);
}

TEST_F(CudaAttentionTest, FewQueries) {
  for (const AttentionSpec& x : std::initializer_list<AttentionSpec>{
           {2, 2, 1, 1, 150, 64, 64},
           {3, 2, 2, 1, 70, 64, 64, false, true, true},
           {1, 2, 2, 3, 40, 128, 128, true, false, false, 0, DType::f16},
           {1, 2, 1, 2, 33, 8, 8, true, false, false, 0.25}}) {
    check_attention(x, kCuda, 0.015);
  }
  check_attention({2, 2, 1, 2, 150, 64, 64, true, false, false, 0, DType::f32}, kCuda, 1e-5);
  check_attention({3, 1, 1, 1, 50, 4, 4, false, true, true, 0, DType::f32}, kCuda, 1e-5);
}

// By tiles, by the kernel of few queries, and by the plain kernels.
TEST_F(CudaAttentionTest, LayersNeedNoCopies) {
  for (const AttentionSpec& x : std::initializer_list<AttentionSpec>{
           {2, 3, 3, 70, 70, 64, 64, true},
           {1, 2, 1, 33, 33, 72, 72, true, true, false, 0.25},
           {2, 4, 2, 3, 3, 16, 16, true, false, false, 0, DType::f16},
           {2, 3, 3, 20, 20, 12, 12, true}}) {
    check_attention_layer(x, kCuda, 0.03);
  }
  check_attention_layer({2, 4, 2, 18, 18, 6, 6, true, false, true, 0, DType::f32}, kCuda, 1e-5);
}

}  // namespace
}  // namespace tessera::test
