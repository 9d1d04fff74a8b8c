// softmax and layer_norm of rows that do not fit the registers of a group, in f32, f16 and bf16:
//
//   softmax     x (R…, C) -> y
//   layer_norm  x (R…, C), gamma (C), beta (C) -> y, mean (R…, 1), rstd (R…, 1)
#pragma once

#include "tessera/backend/gpu/session.h"

namespace tessera::cuda {

// Columns above which the kernels are better than generated ones, which hold a row in registers.
inline constexpr int64_t kShortRow = 16384;

// Bytes of the longest row they take; 0: the device has no copies of whole pieces.
int64_t longest_row(const gpu::DeviceTraits& device);

// How a row is divided; see long_rows.cpp. REQUIRES at most longest_row bytes.
struct LongRowsPlan {
  int groups = 1;          // of the cluster that takes a row
  int64_t piece = 0;       // columns of a group; the last has what is left
  int64_t kept_bytes = 0;  // of shared memory that hold a piece
};
LongRowsPlan plan_long_rows(int64_t columns, DType dtype, int64_t shared_bytes);

// Null for other rows.
std::unique_ptr<gpu::GpuExecutable> make_long_rows(gpu::Session& session, const KernelCall& call);

}  // namespace tessera::cuda
