#include "tessera/optim/optimizer.h"

#include <algorithm>
#include <cmath>

#include "tessera/base/pattern.h"
#include "tessera/graph/scope.h"
#include "tessera/optim/gradients.h"
#include "tessera/tensor/device.h"
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

std::vector<NamedVar> named_by_themselves(const std::vector<Var>& vars) {
  std::vector<NamedVar> named;
  for (const Var& var : vars) named.push_back({var.name(), var});
  return named;
}

}  // namespace

Parameters::Parameters(const std::vector<Var>& vars) : vector(named_by_themselves(vars)) {}

Optimizer::Optimizer(std::string name, const Parameters& parameters, const StepOptions& options,
                     const std::vector<std::string>& slots)
    : name_(std::move(name)), options_(options), slots_(slots.size()) {
  add_parameters(parameters);
  check_options();
  // Counters live where the parameters are.
  const Device device = parameters_.empty() ? default_device() : parameters_[0].value().device();
  lr_ = Var(scalar(checked_lr(options.lr)).to(device), name_ + ".lr", false);
  steps_ = Var(scalar(int64_t{0}).to(device), name_ + ".steps", false);
  skipped_ = Var(scalar(int64_t{0}).to(device), name_ + ".skipped", false);
  make_state(slots);
}

void Optimizer::add_parameters(const Parameters& parameters) {
  for (const auto& [name, var] : parameters) {
    if (!var.trainable()) {
      fail(name_, ": expected trainable parameters, got '", name, "', which is not");
    }
    const auto is_same = [&](const Var& other) { return other.same_slot(var); };
    if (std::ranges::any_of(parameters_, is_same)) continue;
    parameters_.push_back(var);
    names_.push_back(name);
  }
}

void Optimizer::check_options() const {
  const auto check_decay = [&](double decay) {
    if (!(decay >= 0)) fail(name_, ": expected a weight decay of at least 0, got ", decay);
  };
  check_decay(options_.weight_decay);
  for (const ParameterGroup& group : options_.groups) {
    check_decay(group.weight_decay.value_or(0));
    if (!(group.lr_scale >= 0 && std::isfinite(group.lr_scale))) {
      fail(name_, ": expected a finite lr_scale of at least 0, got ", group.lr_scale);
    }
    const auto is_member = [&](const std::string& name) {
      return matches_pattern(group.pattern, name);
    };
    if (std::ranges::none_of(names_, is_member)) {
      fail(name_, ": no parameter matches the group '", group.pattern, "'");
    }
  }
}

void Optimizer::make_state(const std::vector<std::string>& slots) {
  const auto add = [&](size_t index, const std::string& suffix, const Tensor& initial) {
    state_names_.push_back(names_[index] + "." + suffix);
    return state_.emplace_back(initial, state_names_.back(), false);
  };
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const Tensor value = parameters_[i].value();
    const Tensor zero = zeros(value.shape(), compute_type(value.dtype())).to(value.device());
    for (const std::string& slot : slots) add(i, slot, zero);
  }
  masters_.resize(parameters_.size());
  if (!options_.f32_masters) return;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (is_half(parameters_[i].dtype())) masters_[i] = add(i, "master", widened(parameters_[i]));
  }
}

std::vector<NamedVar> Optimizer::named_state() const {
  std::vector<NamedVar> named = {{"lr", lr_}, {"steps", steps_}, {"skipped", skipped_}};
  for (size_t i = 0; i < state_.size(); ++i) named.push_back({state_names_[i], state_[i]});
  return named;
}

const ParameterGroup* Optimizer::group_of(size_t index) const {
  for (const ParameterGroup& group : options_.groups) {
    if (matches_pattern(group.pattern, names_[index])) return &group;
  }
  return nullptr;
}

double Optimizer::weight_decay(size_t index) const {
  const ParameterGroup* group = group_of(index);
  return group ? group->weight_decay.value_or(options_.weight_decay) : options_.weight_decay;
}

Tensor Optimizer::lr_of(size_t index) const {
  const ParameterGroup* group = group_of(index);
  return group ? lr_ * group->lr_scale : lr_.value();
}

Tensor Optimizer::next_step() const { return cast(steps_, DType::f64) + 1; }

void Optimizer::set_lr(double lr) const { lr_.set(checked_lr(lr)); }

void Optimizer::clear_grads() const {
  for (const Var& var : parameters_) var.set_grad({});
}

Tensor Optimizer::wide_value(size_t index) const {
  const Var &parameter = parameters_[index], &master = masters_[index];
  if (!master.defined()) return widened(parameter);
  const Tensor value = parameter;
  return where(cast(master, value.dtype()) == value, master, widened(value));
}

// Interning makes what all parameters share, such as bias corrections, one node.
Optimizer::Updates Optimizer::collect_updates() const {
  Updates updates;
  updates.emplace_back(steps_, steps_.value() + 1);
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const Var& var = parameters_[i];
    if (!var.grad().defined()) continue;
    const Tensor value = update(i, wide_value(i), widened(var.grad()), updates);
    updates.emplace_back(var, cast(value, var.dtype()));
    if (masters_[i].defined()) updates.emplace_back(masters_[i], value);
  }
  return updates;
}

void Optimizer::skip_unless_finite(Updates& updates) const {
  const Tensor finite = all_finite(gradients_of(name_, parameters_));
  for (auto& [var, value] : updates) value = where(finite, value, var);
  updates.emplace_back(skipped_, skipped_ + cast(logical_not(finite), DType::i64));
}

void Optimizer::step(std::source_location line) {
  set_line(line);
  const Scope scope(name_);
  gradients_of(name_, parameters_);  // throws when there is none
  Updates updates = collect_updates();
  if (options_.skip_nonfinite) skip_unless_finite(updates);
  // Assigned only now: until here every value() was that of before the step.
  for (const auto& [var, value] : updates) var.assign(value);
  clear_grads();
  flush();
}

}  // namespace tessera
