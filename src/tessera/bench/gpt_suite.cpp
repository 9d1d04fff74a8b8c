// Training steps of GPTs, and the one that is compared with PyTorch's (bench/peers/gpt_step.py).
#include <memory>

#include "tessera/bench/gpt_lines.h"
#include "tessera/bench/op_case.h"
#include "tessera/bench/options_guard.h"
#include "tessera/bench/suites.h"
#include "tessera/bench/training.h"
#include "tessera/models/gpt.h"
#include "tessera/optim/optim.h"
#include "tessera/tensor/compiled.h"
#include "tessera/tensor/ops.h"

namespace tessera::bench {

namespace {

constexpr int64_t kBatch = 8;
constexpr int64_t kSeed = 1;
// Gradients of ten million parameters in f32 went through five updates of AdamW, which gives a
// small gradient the same step as a large one.
constexpr double kTolerance = 256;  // ulps of the loss
// English text gives GPT-2 about so many; what a text really gives is a matter of its words.
constexpr double kBytesPerToken = 4;

GptConfig char_config() {
  GptConfig config = gpt_preset("char");
  config.dropout = 0;
  return config;
}

GptConfig gpt2_config(int64_t context) {
  GptConfig config = gpt_preset("gpt2");
  config.context = context;
  return config;
}

std::vector<int64_t> characters(const GptConfig& config, uint64_t seed) {
  std::vector<int64_t> result;
  for (const float x : make_data(kBatch * config.context, 0, double(config.vocabulary), seed)) {
    result.push_back(int64_t(x));
  }
  return result;
}

struct Model {
  Model(const GptConfig& config_, DType dtype) : config(config_), gpt(config_, Random(kSeed)) {
    gpt.to(dtype);
    optimizer = std::make_unique<AdamW>(gpt.parameters());
    send();
  }

  void send() {
    tokens = tensor(host_tokens, {kBatch, config.context});
    targets = tensor(host_targets, {kBatch, config.context});
  }

  const GptConfig config;
  const Gpt gpt;
  std::unique_ptr<AdamW> optimizer;
  const std::vector<int64_t> host_tokens = characters(config, 1);
  const std::vector<int64_t> host_targets = characters(config, 2);
  Tensor tokens, targets;
  const CompiledFunction<Tensor, const Tensor&, const Tensor&> step =
      compile([this](const Tensor& x, const Tensor& y) {
        const Tensor loss = gpt.loss(x, y);
        backward(loss);
        optimizer->step();
        return loss;
      });
};

// In f64, node by node and without named kernels: attention by its definition, nothing fused.
std::vector<double> reference_losses(const GptConfig& config) {
  const OptionsGuard plain({.simplify = false,
                            .match = false,
                            .rematerialize = false,
                            .recompute = false,
                            .fuse = false,
                            .kernel_ops = false});
  Model model(config, DType::f64);
  std::vector<double> losses;
  for (int i = 0; i < kCheckedSteps; ++i) {
    losses.push_back(model.step(model.tokens, model.targets).item());
  }
  return losses;
}

TrainingLine line_of(std::string name, const GptConfig& config) {
  TrainingLine line;
  line.name = std::move(name);
  line.unit = "tokens/s";
  line.amount = double(kBatch * config.context);
  line.flops = line.amount * training_flops(config);
  line.tolerance = kTolerance;
  line.make = [config]() -> Training {
    const auto model = std::make_shared<Model>(config, DType::f32);
    return {[model](bool from_host) {
      if (from_host) model->send();
      return model->step(model->tokens, model->targets);
    }};
  };
  line.losses = [config] { return reference_losses(config); };
  return line;
}

void append(std::vector<Case> more, std::vector<Case>& cases) {
  std::move(more.begin(), more.end(), std::back_inserter(cases));
}

}  // namespace

std::vector<Case> gpt_cases() {
  TrainingLine line = line_of("GPT 6 x 384, B = 8, T = 256, AdamW step", char_config());
  line.slow = true;
  std::vector<Case> cases = {to_case(std::move(line))};
  const GptSize sizes[] = {
      {"char GPT 8x256", char_config(), 8, DType::f32, false, 1},
      {"GPT-2 1x256", gpt2_config(256), 1, DType::f32, false, kBytesPerToken},
      {"GPT-2 64x1024", gpt2_config(1024), 64, DType::bf16, true, kBytesPerToken},
  };
  for (const GptSize& size : sizes) {
    append(gpt_part_cases(size), cases);
    append(gpt_variant_cases(size), cases);
    append(gpt_layer_cases(size), cases);
  }
  cases.push_back(gpt_iteration_case(
      {"GPT-2 32x1024", gpt2_config(1024), 32, DType::bf16, true, kBytesPerToken}));
  return cases;
}

}  // namespace tessera::bench
