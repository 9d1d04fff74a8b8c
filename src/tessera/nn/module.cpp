#include "tessera/nn/module.h"

#include <algorithm>

#include "tessera/graph/scope.h"
#include "tessera/tensor/op_support.h"

namespace tessera {

namespace {

void check_name(const std::string& name) {
  if (name.empty() || name.find('.') != std::string::npos) {
    fail("Module: expected a name that is not empty and has no '.', got '", name, "'");
  }
}

}  // namespace

Module::Module(std::string name) : name_(std::move(name)) { check_name(name_); }

Var Module::add_parameter(const std::string& name, const Tensor& initial) {
  check_new_name(name);
  parameters_.push_back({name, Var(initial, name_ + "." + name)});
  return parameters_.back().var;
}

Var Module::add_parameter(const std::string& name, const Var& shared) {
  check_new_name(name);
  if (!shared.defined())
    fail("Module: expected a Var for '", name_, ".", name, "', got an empty handle");
  parameters_.push_back({name, shared});
  return shared;
}

void Module::add_module(const Module& child) {
  check_new_name(child.name());
  children_.push_back(&child);
}

void Module::check_new_name(const std::string& name) const {
  check_name(name);
  const auto is_taken = [&](const std::string& other) { return other == name; };
  if (std::ranges::any_of(parameters_, is_taken, &NamedVar::name) ||
      std::ranges::any_of(children_, is_taken, &Module::name)) {
    fail("Module: '", name_, "' has a part called '", name, "' already");
  }
}

void Module::collect(const std::string& prefix, std::vector<NamedVar>& found) const {
  for (const auto& [name, var] : parameters_) {
    const auto is_same = [&](const NamedVar& other) { return other.var.same_slot(var); };
    if (std::ranges::none_of(found, is_same)) found.push_back({prefix + name, var});
  }
  for (const Module* child : children_) child->collect(prefix + child->name() + ".", found);
}

std::vector<NamedVar> Module::named_parameters() const {
  std::vector<NamedVar> found;
  collect("", found);
  return found;
}

std::vector<Var> Module::parameters() const {
  std::vector<Var> vars;
  for (const NamedVar& named : named_parameters()) vars.push_back(named.var);
  return vars;
}

Tensor Layer::operator()(const Tensor& x, std::source_location where) const {
  set_line(where);
  const Scope scope(name(), where);
  return forward(x);
}

}  // namespace tessera
