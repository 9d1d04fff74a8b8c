// A small problem with two parameters and gradients known in closed form, for comparing optimisers
// with plain loops: loss = Σ (a·p²/2 + sin p) over both, so ∂loss/∂p = a·p + cos p.
#pragma once

#include <cmath>
#include <functional>
#include <vector>

#include "tessera/tessera.h"

namespace tessera {

inline const std::vector<double> kCurvature = {0.5, 1, 2, 4, 0.25};
inline const std::vector<double> kStart = {1, -2, 0.5, 0.125, 3};

inline double gradient_at(size_t i, double p) { return kCurvature[i] * p + std::cos(p); }

// f64, where the plain loops can be met to many digits.
struct Problem {
  Var first{tensor(std::vector<double>(kStart.begin(), kStart.begin() + 3)), "first"};
  Var second{tensor(std::vector<double>(kStart.begin() + 3, kStart.end()), {2, 1}), "second"};
  Tensor a = tensor(std::vector<double>(kCurvature.begin(), kCurvature.begin() + 3));
  Tensor b = tensor(std::vector<double>(kCurvature.begin() + 3, kCurvature.end()), {2, 1});

  std::vector<Var> parameters() const { return {first, second}; }

  // `factor` multiplies the loss, and so the gradients.
  Tensor loss(const Tensor& factor) const {
    const Tensor p = first, q = second;
    return factor * (sum(0.5 * a * p * p + sin(p)) + sum(0.5 * b * q * q + sin(q)));
  }

  std::vector<double> values() const {
    std::vector<double> all = first.value().to_vector<double>();
    for (const double value : second.value().to_vector<double>()) all.push_back(value);
    return all;
  }
};

// One step of training as a function of the loss's factor, in the plain style or compiled.
using StepFunction = std::function<void(double factor)>;

inline StepFunction make_step(bool compiled, const std::function<void(const Tensor&)>& body) {
  if (!compiled) return [=](double factor) { body(scalar(factor)); };
  const auto step = compile([=](const Tensor& factor) { body(factor); });
  return [=](double factor) { step(scalar(factor)); };
}

}  // namespace tessera
