#include "tessera/nn/feed_forward.h"

#include "tessera/tensor/ops.h"

namespace tessera {

namespace {

LinearOptions linear_options(const FeedForwardOptions& o, const Init& weight_init) {
  return {.bias = o.bias, .weight_init = weight_init, .bias_init = o.bias_init};
}

}  // namespace

FeedForward::FeedForward(std::string name, int64_t width, int64_t hidden, const Random& random,
                         const FeedForwardOptions& options)
    : Layer(std::move(name)),
      kind_(options.kind),
      up_(options.up_name, width, hidden, random, linear_options(options, options.weight_init)),
      down_(options.down_name, hidden, width, random,
            linear_options(options, options.down_init ? options.down_init : options.weight_init)) {
  if (kind_ == FeedForwardKind::swiglu) {
    gate_.emplace("gate", width, hidden, random, linear_options(options, options.weight_init));
    add_module(*gate_);
  }
  add_module(up_);
  add_module(down_);
}

Tensor FeedForward::forward(const Tensor& x) const {
  switch (kind_) {
    case FeedForwardKind::relu: return down_(relu(up_(x)));
    case FeedForwardKind::gelu: return down_(gelu(up_(x)));
    case FeedForwardKind::gelu_tanh: return down_(gelu_tanh(up_(x)));
    case FeedForwardKind::swiglu: return down_(silu((*gate_)(x)) * up_(x));
  }
  TESSERA_ASSERT(false);
}

}  // namespace tessera
