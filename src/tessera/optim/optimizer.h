// Optimizer: turns the gradients that backward() left into new values of parameters. It works alike
// in the plain style and inside compile(fn).
//
// Whatever changes from step to step (learning rate, number of steps, moments) is a Var, so that a
// compiled step is compiled once. The learning rate is f64: 0-d arithmetic costs nothing, and
// 1 - beta^step in f32 would lose half its digits in the first steps.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tessera/tensor/var.h"

namespace tessera {

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  // Updates every parameter that has a gradient, by the values before the step, and clears the
  // gradients. Outside compile(fn) it also computes everything that is pending. Throws when no
  // parameter has a gradient.
  //
  // With skip_nonfinite, a step in which some gradient holds an infinity or a NaN changes nothing
  // but skipped(). The device decides that; the host does not wait.
  void step(std::source_location line = std::source_location::current());

  void clear_grads() const;

  // Takes effect with the next step and recompiles nothing. Call it outside compile(fn).
  void set_lr(double lr) const;

  const std::vector<Var>& parameters() const { return parameters_; }  // each slot once
  const Var& lr() const { return lr_; }                               // 0-d f64
  const Var& steps() const { return steps_; }      // 0-d i64: steps taken, skipped ones not counted
  const Var& skipped() const { return skipped_; }  // 0-d i64
  // Moments and the like, made by the constructor; with the Vars above, what a checkpoint must
  // hold.
  const std::vector<Var>& state() const { return state_; }

 protected:
  using Updates = std::vector<std::pair<Var, Tensor>>;

  Optimizer(std::string name, const std::vector<Var>& parameters, double lr, bool skip_nonfinite);

  // Zeros like parameter `index`, in its compute type.
  Var make_state(size_t index, const std::string& suffix);

  Tensor lr_as(DType dtype) const;
  Tensor next_step() const;  // 0-d f64: 1 in the first step

  // Appends new values of the optimiser's state and returns the parameter's. `value` and `grad` are
  // those of parameter `index`, in its compute type; so is the result.
  virtual Tensor update(size_t index, const Tensor& value, const Tensor& grad,
                        Updates& updates) const = 0;

 private:
  Updates collect_updates() const;
  void skip_unless_finite(Updates& updates) const;

  std::string name_;
  std::vector<Var> parameters_;
  Var lr_, steps_, skipped_;
  std::vector<Var> state_;
  bool skip_nonfinite_;
};

}  // namespace tessera
