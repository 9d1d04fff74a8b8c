// What an optimiser works on, and which options hold for which parameter.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "tessera/tensor/named_var.h"

namespace tessera {

// Vars by name. A list of Vars alone takes their own names, which know one level of modules only:
// give Module::named_parameters() where names matter, for groups and for checkpoints.
class Parameters : public std::vector<NamedVar> {
 public:
  Parameters(const std::vector<NamedVar>& parameters) : vector(parameters) {}
  Parameters(const std::vector<Var>& vars);
  Parameters(std::initializer_list<Var> vars) : Parameters(std::vector<Var>(vars)) {}
};

// Options of the parameters whose name matches. Of several groups that match one, the first counts.
struct ParameterGroup {
  std::string pattern;  // '*' stands for any characters: "*.bias"
  double lr_scale = 1;
  std::optional<double> weight_decay = {};  // none: that of the optimiser
};

// What all optimisers have in common.
struct StepOptions {
  double lr, weight_decay;
  std::vector<ParameterGroup> groups;
  bool skip_nonfinite, f32_masters;
};

}  // namespace tessera
