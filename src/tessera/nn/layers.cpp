#include "tessera/nn/layers.h"

#include <cmath>

#include "tessera/tensor/ops.h"

namespace tessera {

namespace {

void check_extents(const char* type, const std::string& name, int64_t a, int64_t b) {
  if (a < 1 || b < 1) {
    fail(type, ": expected extents of at least 1 for '", name, "', got ", a, " and ", b);
  }
}

void check_last_extent(const std::string& name, const Tensor& x, int64_t extent) {
  if (x.rank() == 0 || x.size(-1) != extent) {
    fail_here(name, ": expected an input (…, ", extent, "), got ", x.shape());
  }
}

}  // namespace

Linear::Linear(std::string name, int64_t in, int64_t out, const Random& random,
               const LinearOptions& options)
    : Layer(std::move(name)) {
  check_extents("Linear", this->name(), in, out);
  const double bound = 1 / std::sqrt(double(in));
  const Init standard = uniform_init(-bound, bound);
  const auto chosen = [&](const Init& init) { return init ? init : standard; };
  weight_ = add_parameter("weight", chosen(options.weight_init)(random, {out, in}));
  if (options.bias) bias_ = add_parameter("bias", chosen(options.bias_init)(random, {out}));
}

Linear::Linear(std::string name, const Var& weight)
    : Layer(std::move(name)), weight_(add_parameter("weight", weight)) {
  if (weight.shape().rank() != 2) {
    fail("Linear: expected a weight (out, in) for '", this->name(), "', got ", weight.shape());
  }
}

Tensor Linear::forward(const Tensor& x) const {
  check_last_extent(name(), x, weight_.shape()[1]);
  const Tensor product = matmul(x, transpose(weight_));
  return bias_.defined() ? product + bias_ : product;
}

Embedding::Embedding(std::string name, int64_t count, int64_t width, const Random& random,
                     const Init& weight_init)
    : Layer(std::move(name)) {
  check_extents("Embedding", this->name(), count, width);
  weight_ = add_parameter("weight", weight_init(random, {count, width}));
}

Tensor Embedding::forward(const Tensor& indices) const {
  if (!is_integer(indices.dtype())) {
    fail_here(name(), ": expected integer indices, got ", indices.dtype());
  }
  return take(weight_, indices);
}

LayerNorm::LayerNorm(std::string name, int64_t width, double epsilon, bool bias)
    : Layer(std::move(name)), epsilon_(epsilon) {
  check_extents("LayerNorm", this->name(), width, 1);
  weight_ = add_parameter("weight", ones({width}));
  if (bias) bias_ = add_parameter("bias", zeros({width}));
}

Tensor LayerNorm::forward(const Tensor& x) const {
  check_last_extent(name(), x, weight_.shape()[0]);
  return layer_norm(x, weight_, bias_.defined() ? bias_.value() : zeros_like(weight_), epsilon_);
}

RMSNorm::RMSNorm(std::string name, int64_t width, double epsilon)
    : Layer(std::move(name)), epsilon_(epsilon) {
  check_extents("RMSNorm", this->name(), width, 1);
  weight_ = add_parameter("weight", ones({width}));
}

Tensor RMSNorm::forward(const Tensor& x) const {
  check_last_extent(name(), x, weight_.shape()[0]);
  return rms_norm(x, weight_, epsilon_);
}

Dropout::Dropout(std::string name, double probability, const Random& random)
    : Layer(std::move(name)), probability_(probability), random_(random) {
  if (!(probability >= 0 && probability < 1)) {
    fail("Dropout: expected a probability from 0 to below 1 for '", this->name(), "', got ",
         probability);
  }
}

Tensor Dropout::forward(const Tensor& x) const { return random_.dropout(x, probability_); }

}  // namespace tessera
