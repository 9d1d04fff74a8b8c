// Kernels that touch more bytes than caches hold write past them: the same bits must come out as
// for a few rows at a time.
#include <gtest/gtest.h>

#include <functional>

#include "tessera/tessera.h"

namespace tessera {
namespace {

constexpr int64_t kRows = 2848, kColumns = 1024, kPart = 712;  // three arrays: 35 MB

using Function = std::function<Tensor(const Tensor& x, const Tensor& g)>;

void expect_parts_equal_whole(const Function& function) {
  const Random random(3);
  const Tensor x = random.uniform({kRows, kColumns}, -2, 2).eval();
  const Tensor g = random.uniform({kRows, kColumns}, -1, 1).eval();
  const std::vector<float> whole = function(x, g).to_vector<float>();
  for (int64_t row = 0; row < kRows; row += kPart) {
    const std::vector<float> part =
        function(slice(x, 0, row, row + kPart), slice(g, 0, row, row + kPart)).to_vector<float>();
    const auto begin = whole.begin() + row * kColumns;
    ASSERT_TRUE(std::equal(part.begin(), part.end(), begin)) << "rows from " << row;
  }
}

TEST(LargeRows, GradientOfSoftmax) {
  expect_parts_equal_whole(
      [](const Tensor& x, const Tensor& g) { return grad(sum(softmax(x) * g), x); });
}

TEST(LargeRows, GradientOfLayerNorm) {
  const Tensor gamma = Random(4).uniform({kColumns}, 0.5, 1.5), beta = zeros({kColumns});
  expect_parts_equal_whole([&](const Tensor& x, const Tensor& g) {
    return grad(sum(layer_norm(x, gamma, beta) * g), x);
  });
}

}  // namespace
}  // namespace tessera
