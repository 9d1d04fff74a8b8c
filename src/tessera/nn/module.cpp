#include "tessera/nn/module.h"

#include <algorithm>
#include <set>

#include "tessera/base/pattern.h"
#include "tessera/graph/scope.h"
#include "tessera/tensor/compiled.h"
#include "tessera/tensor/op_support.h"
#include "tessera/tensor/ops.h"

namespace tessera {

namespace {

void check_name(const std::string& name) {
  if (name.empty() || name.find('.') != std::string::npos) {
    fail("Module: expected a name that is not empty and has no '.', got '", name, "'");
  }
}

}  // namespace

std::string to_string(const LoadReport& report) {
  std::string text;
  const auto add = [&](const char* what, const std::vector<std::string>& names) {
    if (names.empty()) return;
    text += (text.empty() ? "" : "; ") + cat(names.size(), " ", what, ": ");
    for (size_t i = 0; i < names.size(); ++i) text += (i > 0 ? ", " : "") + names[i];
  };
  add("missing", report.missing);
  add("unexpected", report.unexpected);
  add("of wrong shape", report.wrong_shape);
  return text;
}

// Building --------------------------------------------------------------------------------------

Module::Module(std::string name) : name_(std::move(name)) { check_name(name_); }

Var Module::add_parameter(const std::string& name, const Tensor& initial) {
  check_new_name(name);
  own_.push_back({name, Var(initial, name_ + "." + name), false});
  return own_.back().var;
}

Var Module::add_parameter(const std::string& name, const Var& shared) {
  check_new_name(name);
  if (!shared.defined())
    fail("Module: expected a Var for '", name_, ".", name, "', got an empty handle");
  own_.push_back({name, shared, false});
  return shared;
}

Var Module::add_buffer(const std::string& name, const Tensor& initial) {
  check_new_name(name);
  own_.push_back({name, Var(initial, name_ + "." + name, false), true});
  return own_.back().var;
}

void Module::add_module(Module& child) {
  check_new_name(child.name());
  children_.push_back(&child);
}

void Module::check_new_name(const std::string& name) const {
  check_name(name);
  const auto is_taken = [&](const std::string& other) { return other == name; };
  if (std::ranges::any_of(own_, is_taken, &Place::name) ||
      std::ranges::any_of(children_, is_taken, &Module::name)) {
    fail("Module: '", name_, "' has a part called '", name, "' already");
  }
}

// Listing ---------------------------------------------------------------------------------------

void Module::collect(const std::string& prefix, std::vector<Place>& found) const {
  for (const auto& [name, var, is_buffer] : own_) found.push_back({prefix + name, var, is_buffer});
  for (const Module* child : children_) child->collect(prefix + child->name() + ".", found);
}

std::vector<Module::Place> Module::places() const {
  std::vector<Place> found;
  collect("", found);
  return found;
}

std::vector<Module::Place> Module::unique_places() const {
  std::vector<Place> unique;
  std::set<const void*> seen;
  for (Place& place : places()) {
    if (seen.insert(place.var.state().get()).second) unique.push_back(std::move(place));
  }
  return unique;
}

template <class Condition>
std::vector<NamedVar> Module::named(const Condition& condition) const {
  std::vector<NamedVar> found;
  for (const Place& place : unique_places()) {
    if (condition(place)) found.push_back({place.name, place.var});
  }
  return found;
}

std::vector<NamedVar> Module::named_parameters() const {
  return named([](const Place& place) { return !place.is_buffer; });
}

std::vector<NamedVar> Module::named_trainable() const {
  return named([](const Place& place) { return !place.is_buffer && place.var.trainable(); });
}

std::vector<NamedVar> Module::named_buffers() const {
  return named([](const Place& place) { return place.is_buffer; });
}

std::vector<Var> Module::parameters() const {
  std::vector<Var> vars;
  for (const NamedVar& parameter : named_parameters()) vars.push_back(parameter.var);
  return vars;
}

// Changing --------------------------------------------------------------------------------------

NamedTensors Module::state_dict() const {
  NamedTensors tensors;
  for (const Place& place : unique_places()) tensors.emplace(place.name, place.var.value());
  return tensors;
}

LoadReport Module::load_state_dict(const NamedTensors& tensors, bool strict) const {
  const std::vector<Place> all = places();
  LoadReport report;
  std::vector<std::pair<Var, Tensor>> found;
  for (const Place& place : unique_places()) {
    const auto is_given = [&](const Place& other) {
      return other.var.same_slot(place.var) && tensors.contains(other.name);
    };
    const auto given = std::ranges::find_if(all, is_given);
    if (given == all.end()) {
      report.missing.push_back(place.name);
    } else if (const Tensor& value = tensors.at(given->name); value.shape() != place.var.shape()) {
      report.wrong_shape.push_back(
          cat(given->name, " (expected ", place.var.shape(), ", got ", value.shape(), ")"));
    } else {
      found.emplace_back(place.var, value);
    }
  }
  for (const auto& [name, value] : tensors) {
    const auto is_named = [&, &given = name](const Place& place) { return place.name == given; };
    if (std::ranges::none_of(all, is_named)) report.unexpected.push_back(name);
  }
  if (strict && !report.complete()) fail("load_state_dict: ", to_string(report));
  for (const auto& [var, value] : found) {
    var.assign(cast(value.to(var.value().device()), var.dtype()));
  }
  flush();
  return report;
}

int64_t Module::freeze(const std::string& pattern, bool frozen) const {
  std::set<const void*> found;
  for (const Place& place : places()) {
    if (place.is_buffer || !matches_pattern(pattern, place.name)) continue;
    place.var.set_trainable(!frozen);
    found.insert(place.var.state().get());
  }
  if (found.empty()) fail("freeze: no parameter of '", name_, "' matches '", pattern, "'");
  return int64_t(found.size());
}

void Module::set_training(bool training) {
  training_ = training;
  for (Module* child : children_) child->set_training(training);
  forget_traces();
}

void Module::to(DType dtype) const {
  if (!is_float(dtype)) {
    fail("Module: expected a floating-point type for '", name_, "', got ", dtype);
  }
  for (const Place& place : unique_places()) {
    if (is_float(place.var.dtype())) place.var.convert(dtype);
  }
}

void Module::to(Device device) const {
  for (const Place& place : unique_places()) place.var.move(device);
}

Tensor Layer::operator()(const Tensor& x, std::source_location where) const {
  set_line(where);
  const Scope scope(name(), where);
  const ModeGuard mode(is_training() && follows_training());
  return forward(x);
}

}  // namespace tessera
