// Attention on a card: on its tensor cores, and without them.
#include "backend_cuda/cuda_test.h"
#include "support/device_attention.h"

namespace tessera::test {
namespace {

class CudaAttention : public OnCuda<> {};

TEST_F(CudaAttention, IsLikeTheCpu) {
  for (const DType dtype : {DType::bf16, DType::f16}) {
    for (AttentionSpec x : std::initializer_list<AttentionSpec>{
             {2, 3, 3, 256, 256, 64, 64, true},
             {2, 4, 2, 300, 777, 64, 64, true},
             {1, 2, 2, 500, 200, 32, 64, true},  // queries that see no key
             {1, 2, 1, 333, 130, 64, 128},
             {1, 2, 2, 200, 200, 128, 128, true},
             {1, 2, 1, 100, 140, 72, 8, true, true},
             {3, 2, 2, 150, 270, 16, 16, false, false, true},
             {1, 2, 2, 140, 140, 96, 96, true, true, true, 0.1},
             {1, 2, 1, 165, 165, 64, 64, true, false, false, 0.25}}) {
      x.dtype = dtype;
      check_attention(x, kCuda, 0.02);
    }
  }
}

TEST_F(CudaAttention, OfOtherTypesIsLikeTheCpu) {
  for (const AttentionSpec& spec : attention_tiles()) check_attention_tile(spec, kCuda);
  for (const int64_t columns : {64, 128}) {
    check_attention({2, 3, 3, 500, 777, columns, columns, true, false, false, 0, DType::f32}, kCuda,
                    1e-5);
  }
}

TEST_F(CudaAttention, FewQueriesAreLikeTheCpu) {
  for (const DType dtype : {DType::bf16, DType::f16, DType::f32}) {
    for (AttentionSpec x :
         std::initializer_list<AttentionSpec>{{2, 12, 12, 1, 1000, 64, 64},
                                              {3, 2, 2, 1, 70, 64, 64, false, true, true},
                                              {1, 4, 2, 3, 400, 128, 128, true},
                                              {1, 2, 1, 2, 33, 8, 8, true, false, false, 0.25}}) {
      x.dtype = dtype;
      check_attention(x, kCuda, dtype == DType::f32 ? 2e-5 : 0.02);
    }
  }
}

TEST_F(CudaAttention, LayersNeedNoCopies) {
  check_attention_layer({2, 12, 12, 300, 300, 64, 64, true}, kCuda, 0.03);
  check_attention_layer({2, 4, 2, 130, 130, 128, 128, true, false, false, 0.1}, kCuda, 0.03);
  check_attention_layer({2, 4, 2, 70, 70, 12, 12, true}, kCuda, 0.03);
}

}  // namespace
}  // namespace tessera::test
