// The two-layer networks between attention layers.
#pragma once

#include <optional>

#include "tessera/nn/layers.h"

namespace tessera {

enum class FeedForwardKind : uint8_t {
  relu,
  gelu,
  gelu_tanh,  // GPT-2's approximation
  swiglu,     // Shazeer 2020: down(silu(gate(x)) · up(x)), as Llama has it
};

struct FeedForwardOptions {
  FeedForwardKind kind = FeedForwardKind::gelu_tanh;
  bool bias = true;
  Init weight_init = {}, bias_init = {};           // as Linear's
  Init down_init = {};                             // of the last weight; none: as weight_init
  std::string up_name = "up", down_name = "down";  // of its Linears, for checkpoints
};

// x (…, width) -> down(f(up(x))) (…, width), with `hidden` channels between.
class FeedForward : public Layer {
 public:
  FeedForward(std::string name, int64_t width, int64_t hidden, const Random& random,
              const FeedForwardOptions& options = {});

  const Linear& up() const { return up_; }
  const Linear& down() const { return down_; }
  const Linear* gate() const { return gate_ ? &*gate_ : nullptr; }  // of swiglu alone

 private:
  Tensor forward(const Tensor& x) const override;

  FeedForwardKind kind_;
  std::optional<Linear> gate_;  // (hidden, width)
  Linear up_;                   // (hidden, width)
  Linear down_;                 // (width, hidden)
};

}  // namespace tessera
