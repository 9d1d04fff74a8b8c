// sort and topk of rows that a group holds: x (R…, C) -> values (R…, K), indices (R…, K).
#pragma once

#include "tessera/backend/gpu/session.h"

namespace tessera::cuda {

// How a row is ordered; see order_rows.cpp.
struct OrderPlan {
  bool selects = false;  // the few first of a row; else all of it is sorted
  int lanes = 0;
  int64_t length = 0;  // of the row in shared memory, a power of two
};

// Nothing (no lanes) where another kernel must serve: long rows, of which much is wanted, and types
// of 8 bytes.
OrderPlan plan_order(int64_t columns, int64_t kept, DType dtype, int64_t shared_bytes);

// Null where the plan has no lanes.
std::unique_ptr<gpu::GpuExecutable> make_order_rows(gpu::Session& session, const KernelCall& call);

}  // namespace tessera::cuda
