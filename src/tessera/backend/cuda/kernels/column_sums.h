#pragma once

#include "tessera/backend/gpu/session.h"

namespace tessera::cuda {

// Sums of a matrix's columns, for products whose library does not take them along, or not as fast.
// Where another matrix lies beside it, the matrix is multiplied on the way, in place, by
// gelu_tanh's slope of that one.
class ColumnSums {
 public:
  // matrix (rows, columns), beside (rows, columns): any strides. `kernel` is named in errors.
  ColumnSums(gpu::Session& session, const std::string& kernel, const OperandView& matrix,
             const OperandView* beside = nullptr);

  // Pointers to the first elements; sums (columns) are contiguous, and may be left out (null) where
  // something lies beside the matrix.
  void operator()(Stream stream, void* matrix, const void* beside, void* sums) const;

  const std::string& source() const { return source_; }

 private:
  // The argument of the kernel.
  struct Matrix {
    int64_t rows, columns, blocks, row_step, column_step, beside_row, beside_column;
  };

  gpu::Session& session_;
  const DType dtype_;
  const int64_t held_;  // rows that a lane reads at once: of two matrices fewer have room
  Matrix shape_ = {};
  std::string source_;
  int64_t most_groups_ = 1;
  std::unique_ptr<gpu::Kernel> parts_, fold_;
};

}  // namespace tessera::cuda
