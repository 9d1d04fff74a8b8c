// layer_norm_backward: g, x, gamma, mean, rstd -> dx, dgamma, dbeta.
#pragma once

#include "tessera/backend/gpu/session.h"

namespace tessera::cuda {

// How a row is divided; see layer_norm_backward.cpp.
struct NormPlan {
  int team = 0;      // lanes that share a row: whole warps
  int lanes = 0;     // of a group
  int vector = 1;    // neighbouring elements that a lane reads at once
  int vectors = 0;   // that a lane has of each row
  bool held = true;  // a row fits the registers of its team
};
// `step`: operands start at multiples of so many elements.
NormPlan plan_norm(int64_t columns, DType dtype, int64_t step = 16);

std::unique_ptr<gpu::GpuExecutable> make_layer_norm_backward(gpu::Session& session,
                                                             const KernelCall& call);

}  // namespace tessera::cuda
