// Tensors of a file of references, by the beginning of their names.
#pragma once

#include <string>

#include "tessera/tessera.h"

namespace tessera {

// The tensors "<prefix>…", by the rest of their names.
inline NamedTensors named_part(const NamedTensors& all, const std::string& prefix) {
  NamedTensors found;
  for (const auto& [name, tensor] : all) {
    if (name.starts_with(prefix)) found.emplace(name.substr(prefix.size()), tensor);
  }
  return found;
}

}  // namespace tessera
