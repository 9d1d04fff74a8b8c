// How this thread compiles while it lives.
#pragma once

#include "tessera/tensor/eval.h"

namespace tessera::bench {

class OptionsGuard {
 public:
  explicit OptionsGuard(const CompileOptions& options) : previous_(set_compile_options(options)) {}
  ~OptionsGuard() { set_compile_options(previous_); }
  OptionsGuard(const OptionsGuard&) = delete;
  OptionsGuard& operator=(const OptionsGuard&) = delete;

 private:
  CompileOptions previous_;
};

}  // namespace tessera::bench
