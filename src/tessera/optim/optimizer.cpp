#include "tessera/optim/optimizer.h"

#include <algorithm>
#include <cmath>

#include "tessera/graph/scope.h"
#include "tessera/optim/gradients.h"
#include "tessera/tensor/op_support.h"
#include "tessera/tensor/ops.h"

namespace tessera {

namespace {

double checked_lr(double lr) {
  if (!(lr >= 0 && std::isfinite(lr))) {
    fail("set_lr: expected a finite learning rate of at least 0, got ", lr);
  }
  return lr;
}

Tensor widened(const Tensor& x) { return cast(x, compute_type(x.dtype())); }

}  // namespace

Optimizer::Optimizer(std::string name, const std::vector<Var>& parameters, double lr,
                     bool skip_nonfinite)
    : name_(std::move(name)),
      lr_(scalar(checked_lr(lr)), name_ + ".lr", false),
      steps_(scalar(int64_t{0}), name_ + ".steps", false),
      skipped_(scalar(int64_t{0}), name_ + ".skipped", false),
      skip_nonfinite_(skip_nonfinite) {
  for (const Var& var : parameters) {
    if (!var.trainable()) {
      fail(name_, ": expected trainable parameters, got '", var.name(), "', which is not");
    }
    const auto is_same = [&](const Var& other) { return other.same_slot(var); };
    if (std::ranges::none_of(parameters_, is_same)) parameters_.push_back(var);
  }
}

Var Optimizer::make_state(size_t index, const std::string& suffix) {
  const Var& parameter = parameters_[index];
  const Tensor zero = zeros(parameter.shape(), compute_type(parameter.dtype()));
  return state_.emplace_back(zero, parameter.name() + "." + suffix, false);
}

Tensor Optimizer::lr_as(DType dtype) const { return cast(lr_, dtype); }
Tensor Optimizer::next_step() const { return cast(steps_, DType::f64) + 1; }

void Optimizer::set_lr(double lr) const { lr_.set(checked_lr(lr)); }

void Optimizer::clear_grads() const {
  for (const Var& var : parameters_) var.set_grad({});
}

// Interning makes what all parameters share, such as bias corrections, one node.
Optimizer::Updates Optimizer::collect_updates() const {
  Updates updates;
  updates.emplace_back(steps_, steps_.value() + 1);
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const Var& var = parameters_[i];
    if (!var.grad().defined()) continue;
    const Tensor value = update(i, widened(var), widened(var.grad()), updates);
    updates.emplace_back(var, cast(value, var.dtype()));
  }
  return updates;
}

void Optimizer::skip_unless_finite(Updates& updates) const {
  Tensor bad;  // 0-d i64: elements that are not finite
  for (const Tensor& grad : gradients_of(name_, parameters_)) {
    const Tensor count = sum(logical_not(isfinite(grad)));
    bad = bad.defined() ? bad + count : count;
  }
  const Tensor finite = bad == 0;
  for (auto& [var, value] : updates) value = where(finite, value, var);
  updates.emplace_back(skipped_, skipped_ + cast(logical_not(finite), DType::i64));
}

void Optimizer::step(std::source_location line) {
  set_line(line);
  const Scope scope(name_);
  gradients_of(name_, parameters_);  // throws when there is none
  Updates updates = collect_updates();
  if (skip_nonfinite_) skip_unless_finite(updates);
  // Assigned only now: until here every value() was that of before the step.
  for (const auto& [var, value] : updates) var.assign(value);
  clear_grads();
  flush();
}

}  // namespace tessera
