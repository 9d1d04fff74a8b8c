// cumsum, cumprod: x -> y, totals along an axis.
#pragma once

#include "tessera/backend/gpu/session.h"

namespace tessera::cuda {

// How the lines along the axis are divided; see scan.cpp.
struct ScanPlan {
  bool by_group = false;  // neighbours along the axis lie together: a group takes a segment
  int vector = 1;         // elements that a lane of a group reads at once
  int64_t segments = 1;   // of a line
  int64_t span = 0;       // elements of a segment
};
ScanPlan plan_scan(const OperandView& x, const OperandView& y, int axis, int64_t compute_units);

std::unique_ptr<gpu::GpuExecutable> make_scan(gpu::Session& session, const KernelCall& call);

}  // namespace tessera::cuda
