// Generated kernels over long rows, beside the CPU.
#include <algorithm>
#include <cmath>

#include "cuda_stand_in/stand_in_test.h"
#include "tessera/tessera.h"

namespace tessera::test {
namespace {

class CudaLongRows : public OnStandIn<> {};

// Rows of GPT-2's vocabulary, more of them than groups run at once: in local memory, starting
// anywhere, with weights that do not.
TEST_F(CudaLongRows, AreAsOnTheCpu) {
  constexpr int64_t kRows = 9, kCols = 50257;
  for (const DType dtype : {DType::f32, DType::bf16}) {
    std::vector<std::vector<float>> results;
    for (const Device device : {kCuda, Device(DeviceKind::cpu)}) {
      set_default_device(device);
      const auto made = [&](const Shape& shape, int seed) {
        return cast(Random(uint64_t(seed)).uniform(shape) * 4 - 2, dtype).eval();
      };
      const Tensor x = made({kRows, kCols}, 1), gamma = made({kCols}, 2), beta = made({kCols}, 3);
      const Tensor each[] = {softmax(x, -1) * 1000, layer_norm(x, gamma, beta)};
      for (const Tensor& y : each) {
        results.push_back(cast(y, DType::f32).to_vector<float>());
      }
    }
    for (size_t k = 0; k < 2; ++k) {
      for (size_t i = 0; i < results[k].size(); ++i) {
        const double expected = results[2 + k][i], tolerance = is_half(dtype) ? 0.02 : 2e-5;
        ASSERT_NEAR(results[k][i], expected, tolerance * std::max(1.0, std::abs(expected)))
            << dtype << " " << k << " " << i;
      }
    }
  }
}

}  // namespace
}  // namespace tessera::test
