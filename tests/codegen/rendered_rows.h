// What tests of rendered reductions share.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "codegen/host_kernel.h"

namespace tessera {

template <class Base>
class WithHostCompiler : public Base {
 protected:
  void SetUp() override {
    const std::string reason = host_compiler_missing();
    if (!reason.empty()) GTEST_SKIP() << reason;
  }
};

inline std::vector<float> waves(int64_t n) {
  std::vector<float> values;
  for (int64_t i = 0; i < n; ++i) values.push_back(3 * std::sin(float(i) * 1.7f));
  return values;
}

inline void expect_softmax(const std::vector<float>& x, const std::vector<float>& y,
                           const std::vector<float>& m, size_t cols) {
  for (size_t row = 0; row < m.size(); ++row) {
    double top = -HUGE_VAL, total = 0;
    for (size_t i = 0; i < cols; ++i) top = std::max(top, double(x[row * cols + i]));
    for (size_t i = 0; i < cols; ++i) total += std::exp(double(x[row * cols + i]) - top);
    EXPECT_EQ(m[row], float(top));
    for (size_t i = 0; i < cols; ++i) {
      EXPECT_NEAR(y[row * cols + i], std::exp(double(x[row * cols + i]) - top) / total, 1e-6);
    }
  }
}

}  // namespace tessera
