// A network of two layers and its training step as plain loops: T is float for what is timed,
// double for the reference; P is the type of the parameters.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

namespace tessera::bench::plain {

struct Mlp {
  static constexpr int64_t kBatch = 64, kIn = 784, kHidden = 256, kOut = 10;
  // weight1 (kHidden, kIn), bias1, weight2 (kOut, kHidden), bias2
  static constexpr std::array<int64_t, 4> kSizes = {kHidden * kIn, kHidden, kOut* kHidden, kOut};
};

template <class P>
using MlpParameters = std::array<const P*, 4>;

// y (kBatch, out) = x (kBatch, in) weightᵀ + bias
template <class T, class X, class P>
void linear(int64_t in, int64_t out, const X* x, const P* weight, const P* bias, T* y) {
  for (int64_t b = 0; b < Mlp::kBatch; ++b) {
    for (int64_t o = 0; o < out; ++o) {
      T sum = bias[o];
      for (int64_t i = 0; i < in; ++i) sum += T(x[b * in + i]) * weight[o * in + i];
      y[b * out + o] = sum;
    }
  }
}

// dweight (out, in) and dbias (out) of g (kBatch, out).
template <class T, class X>
void linear_gradients(int64_t in, int64_t out, const X* x, const T* g, T* dweight, T* dbias) {
  std::fill(dweight, dweight + out * in, T(0));
  std::fill(dbias, dbias + out, T(0));
  for (int64_t b = 0; b < Mlp::kBatch; ++b) {
    for (int64_t o = 0; o < out; ++o) {
      const T slope = g[b * out + o];
      dbias[o] += slope;
      for (int64_t i = 0; i < in; ++i) dweight[o * in + i] += slope * x[b * in + i];
    }
  }
}

template <class T>
class MlpPass {
 public:
  MlpPass()
      : hidden_(Mlp::kBatch * Mlp::kHidden), slope_(hidden_.size()), p_(Mlp::kBatch * Mlp::kOut) {}

  // The mean cross-entropy.
  template <class P>
  T forward(const float* x, const float* targets, const MlpParameters<P>& w) {
    linear(Mlp::kIn, Mlp::kHidden, x, w[0], w[1], hidden_.data());
    for (T& h : hidden_) h = std::max(h, T(0));
    linear(Mlp::kHidden, Mlp::kOut, hidden_.data(), w[2], w[3], p_.data());
    T loss = 0;
    for (int64_t b = 0; b < Mlp::kBatch; ++b) {
      T* const p = p_.data() + b * Mlp::kOut;
      const T greatest = *std::max_element(p, p + Mlp::kOut);
      const T chosen = p[int64_t(targets[b])];
      T sum = 0;
      for (int64_t o = 0; o < Mlp::kOut; ++o) sum += p[o] = std::exp(p[o] - greatest);
      for (int64_t o = 0; o < Mlp::kOut; ++o) p[o] /= sum;
      loss += std::log(sum) + greatest - chosen;
    }
    return loss / T(Mlp::kBatch);
  }

  // Of the last forward, which it spoils. `d` are the gradients, in the order of the parameters.
  template <class P>
  void backward(const float* x, const float* targets, const MlpParameters<P>& w,
                const std::array<T*, 4>& d) {
    for (int64_t b = 0; b < Mlp::kBatch; ++b) p_[size_t(b * Mlp::kOut + int64_t(targets[b]))] -= 1;
    for (T& p : p_) p /= T(Mlp::kBatch);
    linear_gradients(Mlp::kHidden, Mlp::kOut, hidden_.data(), p_.data(), d[2], d[3]);
    std::fill(slope_.begin(), slope_.end(), T(0));
    for (int64_t b = 0; b < Mlp::kBatch; ++b) {
      for (int64_t o = 0; o < Mlp::kOut; ++o) {
        const T slope = p_[size_t(b * Mlp::kOut + o)];
        T* const row = slope_.data() + b * Mlp::kHidden;
        for (int64_t h = 0; h < Mlp::kHidden; ++h) row[h] += slope * w[2][o * Mlp::kHidden + h];
      }
    }
    for (size_t i = 0; i < slope_.size(); ++i) slope_[i] = hidden_[i] > 0 ? slope_[i] : T(0);
    linear_gradients(Mlp::kIn, Mlp::kHidden, x, slope_.data(), d[0], d[1]);
  }

 private:
  std::vector<T> hidden_, slope_, p_;
};

// The whole step, with the defaults of optim/.
template <class T>
class MlpTraining {
 public:
  MlpTraining(const std::vector<std::vector<float>>& start, bool adamw) : adamw_(adamw) {
    for (const std::vector<float>& values : start) {
      value_.emplace_back(values.begin(), values.end());
      grad_.emplace_back(values.size());
      first_.emplace_back(values.size());
      second_.emplace_back(values.size());
    }
  }

  T step(const float* x, const float* targets) {
    const MlpParameters<T> w = {value_[0].data(), value_[1].data(), value_[2].data(),
                                value_[3].data()};
    const T loss = pass_.forward(x, targets, w);
    pass_.backward(x, targets, w,
                   {grad_[0].data(), grad_[1].data(), grad_[2].data(), grad_[3].data()});
    ++steps_;
    for (size_t i = 0; i < value_.size(); ++i) update(i);
    return loss;
  }

 private:
  void update(size_t i) {
    const T lr = adamw_ ? T(1e-3) : T(1e-2);
    if (!adamw_) {
      for (size_t j = 0; j < value_[i].size(); ++j) value_[i][j] -= lr * grad_[i][j];
      return;
    }
    const T beta1 = T(0.9), beta2 = T(0.999), decay = T(1e-2), epsilon = T(1e-8);
    const T scale1 = 1 - T(std::pow(0.9, steps_)),
            scale2 = std::sqrt(1 - T(std::pow(0.999, steps_)));
    for (size_t j = 0; j < value_[i].size(); ++j) {
      const T g = grad_[i][j];
      T& p = value_[i][j];
      p -= lr * decay * p;
      first_[i][j] = beta1 * first_[i][j] + (1 - beta1) * g;
      second_[i][j] = beta2 * second_[i][j] + (1 - beta2) * g * g;
      p -= lr / scale1 * first_[i][j] / (std::sqrt(second_[i][j]) / scale2 + epsilon);
    }
  }

  bool adamw_;
  int64_t steps_ = 0;
  MlpPass<T> pass_;
  std::vector<std::vector<T>> value_, grad_, first_, second_;
};

}  // namespace tessera::bench::plain
