#include "tessera/infer/device_var.h"

namespace tessera {

Var device_var(const Tensor& initial, std::string name, Device device) {
  const Var var(initial, std::move(name), false);
  move_to(var, device);
  return var;
}

void move_to(const Var& var, Device device) {
  if (var.value().device() != device) var.move(device);
}

}  // namespace tessera
