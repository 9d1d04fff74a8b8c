// Module: a named part of a model, with parameters of its own and child modules.
//
//   struct Mlp : Module {
//     Mlp(const Random& random)
//         : Module("mlp"), fc1("fc1", 2, 64, random), fc2("fc2", 64, 2, random) {
//       add_module(fc1);
//       add_module(fc2);
//     }
//     Tensor operator()(const Tensor& x) const { return fc2(relu(fc1(x))); }
//     Linear fc1, fc2;
//   };
//
// What is registered is what parameters() finds. Children are kept by reference, so modules are
// neither copied nor moved, and a child must live as long as its parent. To tie weights, let two
// modules hold the same Var.
#pragma once

#include <source_location>
#include <string>
#include <vector>

#include "tessera/tensor/named_var.h"

namespace tessera {

class Module {
 public:
  virtual ~Module() = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  const std::string& name() const { return name_; }

  // Depth first, own ones before those of children. A Var that is shared comes once.
  std::vector<Var> parameters() const;
  // The same with names relative to this module, such as "block.fc1.weight"; a shared Var has the
  // name of its first place.
  std::vector<NamedVar> named_parameters() const;

 protected:
  // Names are not empty and have no '.', which joins them.
  explicit Module(std::string name);

  // A new Var, called "<module>.<name>" in errors.
  Var add_parameter(const std::string& name, const Tensor& initial);
  // One that exists already.
  Var add_parameter(const std::string& name, const Var& shared);
  void add_module(const Module& child);

 private:
  void check_new_name(const std::string& name) const;
  void collect(const std::string& prefix, std::vector<NamedVar>& found) const;

  std::string name_;
  std::vector<NamedVar> parameters_;
  std::vector<const Module*> children_;
};

// A module from one tensor to one, which Sequential can chain.
class Layer : public Module {
 public:
  // forward(x) in a scope called name().
  Tensor operator()(const Tensor& x,
                    std::source_location where = std::source_location::current()) const;

 protected:
  using Module::Module;

 private:
  virtual Tensor forward(const Tensor& x) const = 0;
};

}  // namespace tessera
