#include "tessera/nn/mlp.h"

#include "tessera/tensor/ops.h"

namespace tessera {

namespace {

LinearOptions linear_options(const MlpOptions& o, const Init& weight_init) {
  return {.bias = o.bias, .weight_init = weight_init, .bias_init = o.bias_init};
}

}  // namespace

Mlp::Mlp(std::string name, int64_t width, int64_t hidden, const Random& random,
         const MlpOptions& options)
    : Layer(std::move(name)),
      kind_(options.kind),
      up_("up", width, hidden, random, linear_options(options, options.weight_init)),
      down_("down", hidden, width, random,
            linear_options(options, options.down_init ? options.down_init : options.weight_init)) {
  if (kind_ == MlpKind::swiglu) {
    gate_.emplace("gate", width, hidden, random, linear_options(options, options.weight_init));
    add_module(*gate_);
  }
  add_module(up_);
  add_module(down_);
}

Tensor Mlp::forward(const Tensor& x) const {
  switch (kind_) {
    case MlpKind::relu: return down_(relu(up_(x)));
    case MlpKind::gelu: return down_(gelu(up_(x)));
    case MlpKind::gelu_tanh: return down_(gelu_tanh(up_(x)));
    case MlpKind::swiglu: return down_(silu((*gate_)(x)) * up_(x));
  }
  TESSERA_ASSERT(false);
}

}  // namespace tessera
