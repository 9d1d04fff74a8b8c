#pragma once

#include <string>

namespace tessera {

class Module;

// A table of parameters and buffers: name, shape, type, elements, bytes, and what is not trained;
// then totals.
std::string summary(const Module& module);

}  // namespace tessera
