#pragma once

#include "tessera/backend/cuda/session.h"

namespace tessera::cuda {

// Sums of a matrix's columns, for products whose library does not take them along.
class ColumnSums {
 public:
  ColumnSums(Session& session, const std::string& kernel, DType dtype);

  // x lies as `view` (rows, columns) says; sums (columns) are contiguous.
  void operator()(Stream stream, const void* x, void* sums, const View& view) const;

 private:
  int64_t group_ = 0;
  std::unique_ptr<gpu::Kernel> kernel_;
};

}  // namespace tessera::cuda
