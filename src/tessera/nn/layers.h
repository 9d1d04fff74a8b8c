// Layers with parameters, and dropout. Parameters have PyTorch's names, shapes and initial
// distributions. Activations are functions of tensor/ops.h.
#pragma once

#include "tessera/nn/init.h"
#include "tessera/nn/module.h"

namespace tessera {

struct LinearOptions {
  bool bias = true;
  Init weight_init = {}, bias_init = {};  // none: uniform in ±1/√in
};

// x (…, in) -> x · weightᵀ + bias (…, out)
class Linear : public Layer {
 public:
  Linear(std::string name, int64_t in, int64_t out, const Random& random,
         const LinearOptions& options = {});
  // Over a weight that another module has: (out, in), without bias.
  Linear(std::string name, const Var& weight);

  const Var& weight() const { return weight_; }  // (out, in)
  const Var& bias() const { return bias_; }      // (out), or empty

 private:
  Tensor forward(const Tensor& x) const override;

  Var weight_, bias_;
};

// Indices (…) of integers in [0, count) -> rows of the table (…, width); others are an error when
// the result is computed.
class Embedding : public Layer {
 public:
  Embedding(std::string name, int64_t count, int64_t width, const Random& random,
            const Init& weight_init = normal_init(0, 1));

  const Var& weight() const { return weight_; }  // (count, width)

 private:
  Tensor forward(const Tensor& indices) const override;

  Var weight_;
};

// Over the last axis: x (…, width) -> (x - mean) / √(variance + epsilon) · weight + bias
class LayerNorm : public Layer {
 public:
  LayerNorm(std::string name, int64_t width, double epsilon = 1e-5, bool bias = true);

  const Var& weight() const { return weight_; }  // (width), from 1
  const Var& bias() const { return bias_; }      // (width), from 0, or empty

 private:
  Tensor forward(const Tensor& x) const override;

  Var weight_, bias_;
  double epsilon_;
};

// Over the last axis: x (…, width) -> x / √(mean(x²) + epsilon) · weight
class RMSNorm : public Layer {
 public:
  RMSNorm(std::string name, int64_t width, double epsilon = 1e-6);

  const Var& weight() const { return weight_; }  // (width), from 1

 private:
  Tensor forward(const Tensor& x) const override;

  Var weight_;
  double epsilon_;
};

// Zeroes elements with `probability` in training, and scales the others up; else the identity.
class Dropout : public Layer {
 public:
  // Draws from `random` whenever it runs: copies of a Random share its counter.
  Dropout(std::string name, double probability, const Random& random);

 private:
  Tensor forward(const Tensor& x) const override;

  double probability_;
  Random random_;
};

}  // namespace tessera
