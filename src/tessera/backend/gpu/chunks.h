// Operands that kernels read 16 bytes at a time.
#pragma once

#include "tessera/kernel/kernel_call.h"

namespace tessera::gpu {

// Whether the last axis is packed, in whole chunks of 16 bytes that start at multiples of them.
inline bool is_chunked(const View& view, DType dtype) {
  const int64_t chunk = 16 / size_of(dtype);
  const int last = view.shape.rank() - 1;
  if (view.shape[last] % chunk != 0 || view.strides[last] != 1) return false;
  for (int i = 0; i < last; ++i) {
    if (view.shape[i] != 1 && view.strides[i] % chunk != 0) return false;
  }
  return view.offset % chunk == 0;
}

}  // namespace tessera::gpu
