// Matrix products by cuBLASLt, where it is installed and the operands lie as it takes them.
#pragma once

#include <optional>
#include <vector>

#include "tessera/backend/cuda/cublaslt.h"
#include "tessera/backend/cuda/session.h"

namespace tessera::cuda {

// A matrix as the library sees it: columns contiguous, `step` elements from one to the next.
struct Panel {
  bool transposed = false;
  int64_t rows = 0, columns = 0, step = 0;  // as stored
};

// d = op(first) op(second), over a batch; outer loops of further products around it.
struct PanelProduct {
  DType dtype = DType::f32;
  bool tf32 = false;  // allowed when the call was compiled
  Panel first, second, result;
  bool swapped = false;  // first is b and second is a: the result is computed transposed
  struct Loop {
    int64_t extent, a, b, c;  // elements from one product to the next
  };
  Loop batch = {1, 0, 0, 0};
  std::vector<Loop> loops;  // outermost first
};

// The call as such a product; nothing where a dtype or the strides are not for the library.
std::optional<PanelProduct> panel_product(const KernelCall& call);

// Null where it is none, or the library is absent.
std::unique_ptr<gpu::GpuExecutable> make_product(Session& session, const KernelCall& call);

}  // namespace tessera::cuda
