// The training step that is compared with PyTorch's (bench/peers/gpt_step.py).
#include <cmath>
#include <memory>

#include "tessera/bench/char_gpt.h"
#include "tessera/bench/op_case.h"
#include "tessera/bench/suites.h"
#include "tessera/bench/training.h"
#include "tessera/optim/optim.h"
#include "tessera/tensor/compiled.h"
#include "tessera/tensor/eval.h"
#include "tessera/tensor/ops.h"

namespace tessera::bench {

namespace {

constexpr int64_t kBatch = 8;
constexpr int64_t kSeed = 1;
// Gradients of ten million parameters in f32 went through five updates of AdamW, which gives a
// small gradient the same step as a large one.
constexpr double kTolerance = 256;  // ulps of the loss

std::vector<int64_t> characters(const CharGptConfig& config, uint64_t seed) {
  std::vector<int64_t> result;
  for (const float x : make_data(kBatch * config.context, 0, double(config.vocabulary), seed)) {
    result.push_back(int64_t(x));
  }
  return result;
}

struct Model {
  explicit Model(const CharGptConfig& config_) : config(config_), gpt(config_, kSeed) { send(); }

  void send() {
    tokens = tensor(host_tokens, {kBatch, config.context});
    targets = tensor(host_targets, {kBatch, config.context});
  }

  const CharGptConfig config;
  const CharGpt gpt;
  AdamW optimizer{gpt.parameters()};
  const std::vector<int64_t> host_tokens = characters(config, 1);
  const std::vector<int64_t> host_targets = characters(config, 2);
  Tensor tokens, targets;
  const CompiledFunction<Tensor, const Tensor&, const Tensor&> step =
      compile([this](const Tensor& x, const Tensor& y) {
        const Tensor loss = gpt.loss(x, y);
        backward(loss);
        optimizer.step();
        return loss;
      });
};

// In f64, node by node and without named kernels: attention by its definition, nothing fused.
std::vector<double> reference_losses(CharGptConfig config) {
  config.dtype = DType::f64;
  const CompileOptions before = set_compile_options({.simplify = false,
                                                     .match = false,
                                                     .rematerialize = false,
                                                     .recompute = false,
                                                     .fuse = false,
                                                     .kernel_ops = false});
  Model model(config);
  std::vector<double> losses;
  for (int i = 0; i < kCheckedSteps; ++i) {
    losses.push_back(model.step(model.tokens, model.targets).item());
  }
  set_compile_options(before);
  return losses;
}

TrainingLine line_of(std::string name, const CharGptConfig& config) {
  TrainingLine line;
  line.name = std::move(name);
  line.unit = "tokens/s";
  line.amount = double(kBatch * config.context);
  // Gradients of weights and of activations take two products for each of the forward pass.
  line.flops = 3 * forward_flops(config, kBatch * config.context);
  line.tolerance = kTolerance;
  line.make = [config]() -> Training {
    const auto model = std::make_shared<Model>(config);
    return {[model](bool from_host) {
      if (from_host) model->send();
      return model->step(model->tokens, model->targets);
    }};
  };
  line.losses = [config] { return reference_losses(config); };
  return line;
}

}  // namespace

std::vector<Case> gpt_cases() {
  const CharGptConfig config;
  TrainingLine line = line_of("GPT 6 x 384, B = 8, T = 256, AdamW step", config);
  line.slow = true;
  return {to_case(std::move(line))};
}

}  // namespace tessera::bench
