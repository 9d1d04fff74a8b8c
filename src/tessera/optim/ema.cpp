#include "tessera/optim/ema.h"

#include <algorithm>

#include "tessera/graph/scope.h"
#include "tessera/tensor/ops.h"

namespace tessera {

Ema::Ema(const Parameters& parameters, double decay) : decay_(decay) {
  if (!(decay >= 0 && decay < 1)) fail("Ema: expected a decay from 0 to below 1, got ", decay);
  for (const auto& [name, var] : parameters) {
    const auto is_same = [&](const Var& other) { return other.same_slot(var); };
    if (std::ranges::any_of(parameters_, is_same)) continue;
    parameters_.push_back(var);
    averages_.emplace_back(cast(var, compute_type(var.dtype())), name + ".average", false);
  }
}

void Ema::update() const {
  if (!saved_.empty()) fail("Ema: the averages are applied: call restore() before update()");
  const Scope scope("ema");
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const Var& average = averages_[i];
    average.assign(lerp(average, cast(parameters_[i], average.dtype()), 1 - decay_));
  }
  flush();
}

void Ema::apply() {
  if (!saved_.empty()) fail("Ema: the averages are applied already: call restore() first");
  for (size_t i = 0; i < parameters_.size(); ++i) {
    saved_.push_back(parameters_[i].value().detach());
    parameters_[i].assign(cast(averages_[i], parameters_[i].dtype()));
  }
  flush();
}

void Ema::restore() {
  if (saved_.empty()) fail("Ema: nothing to restore: call apply() first");
  for (size_t i = 0; i < parameters_.size(); ++i) parameters_[i].assign(saved_[i]);
  flush();
  saved_.clear();
}

std::vector<NamedVar> Ema::named_state() const {
  std::vector<NamedVar> named;
  for (const Var& average : averages_) named.push_back({average.name(), average});
  return named;
}

}  // namespace tessera
