// A GPT, or one part of its training step, on one device: what the lines about GPTs time.
#pragma once

#include <optional>

#include "tessera/bench/check.h"
#include "tessera/compile/compile.h"
#include "tessera/models/gpt.h"
#include "tessera/optim/optim.h"
#include "tessera/tensor/compiled.h"

namespace tessera::bench {

enum class GptPart : uint8_t {
  forward,    // gives the loss
  both,       // with the backward pass: the loss and the norm of all gradients
  optimizer,  // clipping and AdamW alone, over gradients that equal the first parameters: the norm
  iteration,  // everything: the loss and the norm
};

struct GptVariant {
  DType dtype = DType::f32;  // of parameters; half types have f32 masters
  bool tf32 = false;
  Checkpointing checkpointing = Checkpointing::none;
  CompileOptions options = {};
};

class GptRun {
 public:
  // Sequences of config.context tokens. Weights and tokens are the same on every device. Throws
  // "out of memory …" where they do not fit.
  GptRun(const GptConfig& config, int64_t batch, GptPart part, const GptVariant& variant,
         Device device);

  // Queued; nothing is read.
  void run() const { call(); }
  void wait() const;

  // Of `runs` runs: the losses, and the norms, where the part has them.
  Outputs outputs(int runs) const;

  const std::vector<Var>& parameters() const { return parameters_; }
  int64_t memory() const;  // bytes of a run: parameters, optimiser, batch, results, temporaries

 private:
  std::vector<Tensor> call() const;
  std::vector<Tensor> trace(std::span<const Tensor> batch);

  GptPart part_;
  GptVariant variant_;
  Device device_;
  std::unique_ptr<Gpt> model_;
  std::vector<Var> parameters_;
  std::optional<AdamW> optimizer_;  // of the parts that need it
  std::vector<Var> gradients_;      // of GptPart::optimizer
  std::vector<Tensor> batch_;       // tokens and targets (B, T); none for GptPart::optimizer
  Compiled step_;
};

// The norm that gradients are clipped to.
inline constexpr double kClip = 1;

}  // namespace tessera::bench
