#include "tessera/bench/gpt_run.h"

#include "tessera/base/precision.h"
#include "tessera/bench/device_guard.h"
#include "tessera/bench/op_case.h"
#include "tessera/bench/options_guard.h"
#include "tessera/tensor/ops.h"

namespace tessera::bench {

namespace {

constexpr int64_t kSeed = 1;

// What holds whenever the function may be traced.
class Conditions {
 public:
  Conditions(Device device, const GptVariant& variant)
      : device_(device), options_(variant.options), tf32_(set_tf32(variant.tf32)) {}
  ~Conditions() { set_tf32(tf32_); }
  Conditions(const Conditions&) = delete;
  Conditions& operator=(const Conditions&) = delete;

 private:
  DeviceGuard device_;
  OptionsGuard options_;
  EagerGuard compiled_{false};
  bool tf32_;
};

Tensor drawn_tokens(const GptConfig& config, int64_t batch, uint64_t seed) {
  std::vector<int32_t> tokens;
  for (const float x : make_data(batch * config.context, 0, double(config.vocabulary), seed)) {
    tokens.push_back(int32_t(x));
  }
  return tensor(tokens, {batch, config.context});
}

int64_t bytes_of(const std::vector<Var>& vars) {
  int64_t bytes = 0;
  for (const Var& var : vars) bytes += byte_size({var.dtype(), var.shape()});
  return bytes;
}

// Drawn by the host, so that every device has the same weights.
std::unique_ptr<Gpt> drawn_model(const GptConfig& config) {
  const DeviceGuard host((Device()));
  return std::make_unique<Gpt>(config, Random(kSeed));
}

}  // namespace

GptRun::GptRun(const GptConfig& config, int64_t batch, GptPart part, const GptVariant& variant,
               Device device)
    : part_(part),
      variant_(variant),
      device_(device),
      model_(drawn_model(config)),
      step_([this](std::span<const Tensor> in, std::span<const int64_t>) { return trace(in); }) {
  const Conditions conditions(device, variant);
  model_->to(variant.dtype);
  model_->to(device);
  model_->set_checkpointing(variant.checkpointing);
  parameters_ = model_->parameters();
  if (part == GptPart::optimizer || part == GptPart::iteration) optimizer_.emplace(parameters_);
  if (part == GptPart::optimizer) {
    for (const Var& var : parameters_) gradients_.emplace_back(var, "gradient", false);
  } else {
    batch_ = {drawn_tokens(config, batch, 1), drawn_tokens(config, batch, 2)};
  }
  step_.prepare(batch_);
}

std::vector<Tensor> GptRun::trace(std::span<const Tensor> batch) {
  std::vector<Tensor> results;
  if (part_ != GptPart::optimizer) {
    const Tensor loss = model_->loss(batch[0], batch[1]);
    results.push_back(cast(loss, DType::f32));
    if (part_ == GptPart::forward) return results;
    backward(loss);
  } else {
    for (size_t i = 0; i < gradients_.size(); ++i) parameters_[i].set_grad(gradients_[i]);
  }
  if (part_ == GptPart::both) {
    results.push_back(grad_norm(parameters_));
    return results;
  }
  results.push_back(clip_grad_norm(parameters_, kClip));
  optimizer_->step();
  return results;
}

std::vector<Tensor> GptRun::call() const {
  const Conditions conditions(device_, variant_);
  return step_(batch_);
}

void GptRun::wait() const { device_context(device_).backend.synchronize(Stream{}); }

Outputs GptRun::outputs(int runs) const {
  Outputs outputs;
  for (int i = 0; i < runs; ++i) {
    const std::vector<Tensor> values = call();
    outputs.resize(values.size());
    for (size_t k = 0; k < values.size(); ++k) outputs[k].push_back(float(values[k].item()));
  }
  return outputs;
}

int64_t GptRun::memory() const {
  const Report& report = step_.program().report;
  int64_t bytes = bytes_of(parameters_) + bytes_of(gradients_);
  if (optimizer_) bytes += bytes_of(optimizer_->state());
  for (const Tensor& tensor : batch_) bytes += byte_size(tensor.value().type());
  return bytes + 2 * report.output_bytes + report.temporary_bytes;  // results take turns
}

}  // namespace tessera::bench
