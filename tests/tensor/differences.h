// Gradients of functions of f64 tensors against central differences, in first and second order.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "tessera/conformance/reference.h"
#include "tessera/tensor/autograd.h"
#include "tessera/tensor/ops.h"

namespace tessera {

using TensorOf = std::function<Tensor(const std::vector<Tensor>&)>;

// Σ w · f(inputs) with fixed random w.
inline Tensor weighted(const TensorOf& f, const std::vector<Tensor>& inputs) {
  const Tensor y = f(inputs);
  return sum(y * random_tensor(y.shape(), 901, y.dtype()));
}

inline void expect_first_order(const TensorOf& f, const std::vector<Tensor>& inputs) {
  constexpr double kStep = 1e-5, kTolerance = 1e-6;
  const std::vector<Tensor> gradients = grad(weighted(f, inputs), inputs);
  for (size_t k = 0; k < inputs.size(); ++k) {
    const std::vector<double> x = to_doubles(inputs[k]), g = to_doubles(gradients[k]);
    ASSERT_EQ(gradients[k].shape(), inputs[k].shape());
    for (size_t i = 0; i < x.size(); ++i) {
      const auto moved = [&](double step) {
        std::vector<double> at = x;
        at[i] += step;
        std::vector<Tensor> changed = inputs;
        changed[k] = tensor(at, inputs[k].shape());
        return weighted(f, changed).item();
      };
      const double expected = (moved(kStep) - moved(-kStep)) / (2 * kStep);
      EXPECT_NEAR(g[i], expected, kTolerance * (1 + std::fabs(expected)))
          << "input " << k << ", element " << i;
    }
  }
}

// Also of the gradients themselves.
inline void expect_gradients(const TensorOf& f, const std::vector<Tensor>& inputs) {
  {
    SCOPED_TRACE("first order");
    expect_first_order(f, inputs);
  }
  SCOPED_TRACE("second order");
  const TensorOf first = [&f](const std::vector<Tensor>& in) {
    Tensor total;
    const std::vector<Tensor> gradients = grad(weighted(f, in), in);
    for (size_t k = 0; k < in.size(); ++k) {
      const Tensor part =
          sum(gradients[k] * random_tensor(in[k].shape(), int64_t(902 + k), in[k].dtype()));
      total = total.defined() ? total + part : part;
    }
    return total;
  };
  expect_first_order(first, inputs);
}

inline void expect_near(const Tensor& actual, const std::vector<double>& expected,
                        double tolerance = 1e-12) {
  const std::vector<double> values = to_doubles(actual);
  ASSERT_EQ(values.size(), expected.size());
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_NEAR(values[i], expected[i], tolerance * (1 + std::fabs(expected[i]))) << i;
  }
}

}  // namespace tessera
