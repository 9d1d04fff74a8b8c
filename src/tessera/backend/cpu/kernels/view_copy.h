// Copies of strided views, made of a generated kernel.
#pragma once

#include <optional>

#include "tessera/backend/cpu/generated_kernel.h"

namespace tessera::cpu {

class ViewCopy {
 public:
  // REQUIRES equal shapes, and types that are equal or share a compute type (f16 and f32, say).
  ViewCopy(const OperandView& from, const OperandView& to);

  void run(char* from, char* to) const;

 private:
  std::optional<GeneratedKernel> kernel_;  // none where there is nothing to copy
  int64_t extent0_ = 0;
};

}  // namespace tessera::cpu
