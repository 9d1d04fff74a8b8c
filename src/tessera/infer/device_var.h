#pragma once

#include <string>

#include "tessera/tensor/var.h"

namespace tessera {

// A Var that is not trained, on that device.
Var device_var(const Tensor& initial, std::string name, Device device);

// Where the Var is not there already: moving has compiled functions trace anew.
void move_to(const Var& var, Device device);

}  // namespace tessera
