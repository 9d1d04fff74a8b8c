// Optimizer: turns the gradients that backward() left into new values of parameters. It works alike
// in the plain style and inside compile(fn).
//
// Whatever changes from step to step (learning rate, number of steps, moments) is a Var, so that a
// compiled step is compiled once. The learning rate is f64: 0-d arithmetic costs nothing, and
// 1 - beta^step in f32 would lose half its digits in the first steps.
//
// Options that every optimiser has:
//   groups          other options for parameters by name, see ParameterGroup
//   skip_nonfinite  a step in which some gradient holds an infinity or a NaN changes nothing but
//                   skipped(). The device decides that; the host does not wait.
//   f32_masters     parameters of half types have an f32 master, to which updates are added that
//                   the half type would round away; the parameter is the master, rounded. Where a
//                   parameter was changed by somebody else, its own value counts.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tessera/optim/parameters.h"

namespace tessera {

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  // Updates every parameter that has a gradient, by the values before the step, and clears the
  // gradients. Outside compile(fn) it also computes everything that is pending. Throws when no
  // parameter has a gradient.
  void step(std::source_location line = std::source_location::current());

  void clear_grads() const;

  // Takes effect with the next step and recompiles nothing. Call it outside compile(fn). Groups
  // have it times their lr_scale.
  void set_lr(double lr) const;

  const std::vector<Var>& parameters() const { return parameters_; }  // each slot once
  const Var& lr() const { return lr_; }                               // 0-d f64
  const Var& steps() const { return steps_; }      // 0-d i64: steps taken, skipped ones not counted
  const Var& skipped() const { return skipped_; }  // 0-d i64
  bool skips_nonfinite() const { return options_.skip_nonfinite; }
  // Moments and the like, then the masters, all made by the constructor.
  const std::vector<Var>& state() const { return state_; }
  // What a checkpoint must hold: "lr", "steps", "skipped", and the above as "fc1.weight.m".
  std::vector<NamedVar> named_state() const;

 protected:
  using Updates = std::vector<std::pair<Var, Tensor>>;

  // Every parameter gets a state for each of `slots`: zeros in its compute type.
  Optimizer(std::string name, const Parameters& parameters, const StepOptions& options,
            const std::vector<std::string>& slots);

  const Var& state(size_t index, size_t slot) const { return state_[index * slots_ + slot]; }
  double weight_decay(size_t index) const;
  Tensor lr_of(size_t index) const;  // 0-d f64
  Tensor next_step() const;          // 0-d f64: 1 in the first step

  // Appends new values of the optimiser's state and returns the parameter's. `value` and `grad` are
  // those of parameter `index`, in its compute type; so is the result.
  virtual Tensor update(size_t index, const Tensor& value, const Tensor& grad,
                        Updates& updates) const = 0;

 private:
  void add_parameters(const Parameters& parameters);
  void check_options() const;
  void make_state(const std::vector<std::string>& slots);
  const ParameterGroup* group_of(size_t index) const;
  Tensor wide_value(size_t index) const;
  Updates collect_updates() const;
  void skip_unless_finite(Updates& updates) const;

  std::string name_;
  StepOptions options_;
  std::vector<Var> parameters_;
  std::vector<std::string> names_;
  Var lr_, steps_, skipped_;
  size_t slots_;
  std::vector<Var> state_;
  std::vector<std::string> state_names_;
  std::vector<Var> masters_;  // by parameter; empty where it has none
};

// The fields that the options of every optimiser have.
template <class Options>
StepOptions step_options(const Options& o) {
  return {.lr = o.lr,
          .weight_decay = o.weight_decay,
          .groups = o.groups,
          .skip_nonfinite = o.skip_nonfinite,
          .f32_masters = o.f32_masters};
}

}  // namespace tessera
