// Module: a named part of a model, with parameters and buffers of its own and child modules.
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
//
// Names are relative to the module they are asked of, such as "block.fc1.weight". A Var that is
// shared comes once, under the name of its first place: depth first, own ones before those of
// children. In patterns '*' stands for any characters: "*.bias".
#pragma once

#include <source_location>
#include <string>
#include <vector>

#include "tessera/tensor/files.h"
#include "tessera/tensor/named_var.h"

namespace tessera {

// What loading did not find, or could not use, by name; wrong_shape with both shapes.
struct LoadReport {
  std::vector<std::string> missing, unexpected, wrong_shape;

  bool complete() const { return missing.empty() && unexpected.empty() && wrong_shape.empty(); }
};
std::string to_string(const LoadReport& report);

class Module {
 public:
  virtual ~Module() = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  const std::string& name() const { return name_; }

  std::vector<Var> parameters() const;
  std::vector<NamedVar> named_parameters() const;
  std::vector<NamedVar> named_trainable() const;  // parameters that are not frozen
  std::vector<NamedVar> named_buffers() const;

  // Values of parameters and buffers, for save_safetensors. They are those of now: detach() what is
  // to outlive a step.
  NamedTensors state_dict() const;
  // Takes values of the same shapes, cast to the type that each Var has. Any name of a shared Var
  // will do. Strict: throws, and loads nothing, where the report would not be empty. Else loads
  // what fits.
  LoadReport load_state_dict(const NamedTensors& tensors, bool strict = true) const;

  // Parameters whose names match get no gradients any more, or get them again. Returns how many;
  // throws where none does. Optimisers take named_trainable().
  int64_t freeze(const std::string& pattern, bool frozen = true) const;

  // Keeps this module and its children in evaluation mode, whatever the mode of the step (see
  // ModeGuard), or lets them follow it again. Compiled functions trace anew.
  void set_training(bool training);
  bool follows_training() const { return training_; }

  // Moves parameters and buffers; of buffers only floating-point ones change their type. Before
  // optimisers are made, which have state beside the parameters.
  void to(DType dtype) const;
  void to(Device device) const;

 protected:
  // Names are not empty and have no '.', which joins them.
  explicit Module(std::string name);

  // A new Var, called "<module>.<name>" in errors.
  Var add_parameter(const std::string& name, const Tensor& initial);
  // One that exists already.
  Var add_parameter(const std::string& name, const Var& shared);
  // A new Var that is saved and moved with the parameters, but not trained.
  Var add_buffer(const std::string& name, const Tensor& initial);
  void add_module(Module& child);

 private:
  struct Place {
    std::string name;
    Var var;
    bool is_buffer;
  };

  void check_new_name(const std::string& name) const;
  void collect(const std::string& prefix, std::vector<Place>& found) const;
  std::vector<Place> places() const;         // all, shared Vars several times
  std::vector<Place> unique_places() const;  // the first ones
  template <class Condition>
  std::vector<NamedVar> named(const Condition& condition) const;

  std::string name_;
  std::vector<Place> own_;
  std::vector<Module*> children_;
  bool training_ = true;
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
