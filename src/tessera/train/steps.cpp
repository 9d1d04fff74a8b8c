#include "tessera/train/steps.h"

#include <algorithm>
#include <limits>

#include "tessera/graph/scope.h"
#include "tessera/tensor/autograd.h"
#include "tessera/tensor/ops.h"

namespace tessera {

namespace {

int64_t bytes_of(std::span<const Tensor> tensors) {
  int64_t bytes = 0;
  for (const Tensor& tensor : tensors) bytes += byte_size(tensor.value().type());
  return bytes;
}

}  // namespace

CompiledSteps::CompiledSteps(StepParts parts) : parts_(std::move(parts)) {
  const std::vector<Var>& vars = parts_.optimizer.parameters();
  const Device device = vars.empty() ? default_device() : vars[0].value().device();
  if (parts_.loss_scaling) {
    scaler_ = std::make_unique<LossScaler>(LossScalerOptions{}, device);
  }
  if (parts_.ema > 0) ema_ = std::make_unique<Ema>(parts_.parameters, parts_.ema);
  using Inputs = std::span<const Tensor>;
  using Statics = std::span<const int64_t>;
  evaluation_.emplace([this](Inputs batch, Statics) {
    return std::vector<Tensor>{cast(parts_.loss(batch), DType::f32)};
  });
  if (parts_.accumulate == 1) {
    step_.emplace([this](Inputs batch, Statics) {
      const Tensor loss = backward(batch);
      return std::vector<Tensor>{loss, update()};
    });
    return;
  }
  sums_ = std::make_unique<GradientAccumulator>(vars);
  loss_sum_ = Var(zeros({}).to(device), "trainer.loss_sum", false);
  batch_.emplace([this](Inputs batch, Statics) {
    loss_sum_.assign(loss_sum_ + backward(batch));
    sums_->add();
    return std::vector<Tensor>{};
  });
  step_.emplace([this](Inputs, Statics) {
    const Tensor loss = loss_sum_ / cast(sums_->count(), DType::f32);
    loss_sum_.assign(zeros({}));
    sums_->take();
    return std::vector<Tensor>{loss, update()};
  });
}

Tensor CompiledSteps::backward(std::span<const Tensor> batch) const {
  const Tensor loss = parts_.loss(batch);
  if (scaler_) {
    scaler_->backward(loss);
  } else {
    tessera::backward(loss);
  }
  return cast(loss, DType::f32);
}

Tensor CompiledSteps::clip(const std::vector<Var>& vars) const {
  if (parts_.clip <= 0 && parts_.clip_value <= 0) return grad_norm(vars);
  // Also without a limit: it makes gradients NaN where one is infinite, which a limit of elements
  // would hide from the optimiser.
  const double most = parts_.clip > 0 ? parts_.clip : std::numeric_limits<double>::infinity();
  const Tensor norm = clip_grad_norm(vars, most);
  if (parts_.clip_value > 0) clip_grad_value(vars, parts_.clip_value);
  return norm;
}

Tensor CompiledSteps::update() const {
  if (scaler_) scaler_->unscale(parts_.optimizer);
  const std::vector<Var>& vars = parts_.optimizer.parameters();
  const Tensor norm = clip(vars);
  parts_.optimizer.step();
  if (ema_) ema_->update();
  return norm;
}

std::vector<Tensor> CompiledSteps::operator()(std::span<const std::vector<Tensor>> batches) const {
  if (!batch_) return (*step_)(batches[0]);
  for (const std::vector<Tensor>& batch : batches) (*batch_)(batch);
  return (*step_)({});
}

Tensor CompiledSteps::evaluate(std::span<const Tensor> batch) const {
  const ModeGuard mode(false);
  return (*evaluation_)(batch)[0];
}

MemoryPlan CompiledSteps::plan(std::span<const Tensor> batch) const {
  MemoryPlan plan;
  plan.batches = bytes_of(batch);
  const auto add = [&](const Compiled& part, std::span<const Tensor> inputs) {
    part.prepare(inputs);
    const Report& report = part.program().report;
    plan.batches += 2 * report.output_bytes;  // results take turns between two places
    if (report.temporary_bytes <= plan.temporaries) return;
    plan.temporaries = report.temporary_bytes;
    plan.peak_by_scope = report.peak_by_scope;
  };
  if (batch_) {
    add(*batch_, batch);
    add(*step_, {});
    for (const Var& sum : sums_->sums()) plan.sums += byte_size({sum.dtype(), sum.shape()});
  } else {
    add(*step_, batch);
  }
  return plan;
}

std::vector<NamedVar> CompiledSteps::state() const {
  std::vector<NamedVar> vars;
  if (scaler_) {
    for (const auto& [name, var] : scaler_->named_state()) vars.push_back({"scaler." + name, var});
  }
  if (ema_) {
    for (const auto& [name, var] : ema_->named_state()) vars.push_back({"ema." + name, var});
  }
  return vars;
}

}  // namespace tessera
