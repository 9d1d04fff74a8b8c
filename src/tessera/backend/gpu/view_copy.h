// Copies between strided views of one shape; the dtypes may differ in how they store one compute
// type (f16, bf16 and f32).
#pragma once

#include "tessera/backend/gpu/named_kernel.h"

namespace tessera::gpu {

class ViewCopy {
 public:
  ViewCopy(Session& session, const OperandView& from, const OperandView& to);

  void run(Operand from, Operand to, Stream stream) const;

 private:
  Session& session_;
  int64_t count_;
  int64_t bytes_ = 0;  // of an element
  Axes extents_, from_strides_, to_strides_;
  int64_t group_ = 0;
  std::unique_ptr<Kernel> kernel_;  // none: both are contiguous and of one dtype
};

}  // namespace tessera::gpu
