// Matrix products by CLBlast, where libclblast.so.1 is installed and a product is worth it.
#pragma once

#include <optional>

#include "tessera/backend/opencl/kernels/kernel.h"

namespace tessera::opencl {

// c = a b of matrices whose rows or columns are contiguous.
struct DenseProduct {
  DType dtype;
  int64_t m, n, k;
  bool a_transposed, b_transposed;
  int64_t a_step, b_step, c_step;  // elements from one row, or column, to the next
};

// The call as such a product; nothing where it is none, small or a batch, or without CLBlast.
std::optional<DenseProduct> dense_product(const KernelCall& call);

// Queues it: a, b, c.
void multiply_dense(const DenseProduct& product, const gpu::Operand operands[3], QueueId queue);

// Null where dense_product() gives nothing or the call is no product.
std::unique_ptr<gpu::GpuExecutable> make_clblast(Session& session, const KernelCall& call);

}  // namespace tessera::opencl
