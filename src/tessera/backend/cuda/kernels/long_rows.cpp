// A group holds a row, or a cluster of groups a piece each, in shared memory, where one copy puts
// it. A group finds the statistics of what it holds by itself; those of a cluster then tell each
// other once, and all join them in the same order. Two groups fit a multiprocessor: one reads while
// the other computes.
//
// Rows begin anywhere. What is copied begins and ends at multiples of 16 bytes; results leave so
// where y begins as x does, but for a few elements before and behind.
#include "tessera/backend/cuda/kernels/long_rows.h"

#include <algorithm>
#include <limits>

#include "tessera/backend/cuda/kernels/long_rows_text.h"
#include "tessera/backend/gpu/named_kernel.h"
#include "tessera/codegen/text.h"

namespace tessera::cuda {

namespace {

constexpr int kLanes = 512, kMostGroups = 8, kUnitBytes = 16, kPieceStep = 32;
// Of a multiprocessor, whose registers hold no more.
constexpr int kGroupsAtOnce = 2;
// Of shared memory: what a kernel declares, and the driver's own.
constexpr int64_t kReserve = 2048;

// What a group may hold if others are to fit beside it.
int64_t piece_bytes(int64_t shared_bytes) { return shared_bytes / kGroupsAtOnce - kReserve; }

// The Task of long_rows_text.h.
struct Task {
  const void *x, *gamma, *beta;
  void *y, *mean, *rstd;
  int64_t rows;
  float epsilon;
};

class LongRows : public gpu::GpuExecutable {
 public:
  LongRows(gpu::Session& session, const KernelCall& call)
      : call_(call),
        plan_(plan_long_rows(columns(), dtype(), session.device().local_bytes_asked)),
        clusters_at_once_(clusters_at_once(session.device())) {
    const bool halves = is_half(dtype());
    const int64_t vector = kUnitBytes / size_of(dtype());
    const std::string_view work = is_norm() ? kLayerNormOfRow : kSoftmaxOfRow;
    const std::string cluster =
        plan_.groups > 1 ? cat("__cluster_dims__(", plan_.groups, ", 1, 1)") : "";
    const std::string source =
        gpu::complete_source(session, cat(kRowsBegin, work, kRowsEntry), dtype(),
                             {{"$lanes", cat(kLanes)},
                              {"$at_once", cat(kGroupsAtOnce)},
                              {"$groups", cat(plan_.groups)},
                              {"$columns", cat(columns())},
                              {"$piece", cat(plan_.piece)},
                              {"$vector", cat(vector)},
                              {"$behind", cat(is_norm() ? vector - 1 : 0)},
                              {"$halves", halves ? "1" : "0"},
                              {"$cluster", cluster}});
    kernel_ = session.build(call.kernel, source, "tessera_long_rows");
  }

  void launch(std::span<const BufferRef> at, int64_t, Stream stream) const override {
    const auto pointer = [&](size_t i) -> void* {
      const gpu::Operand operand = gpu::operand(at[i], call_.operands[i]);
      if (operand.mem == nullptr) return nullptr;
      return static_cast<std::byte*>(operand.mem) +
             operand.start * size_of(call_.operands[i].dtype);
    };
    Task task = {};
    task.x = pointer(0);
    task.rows = numel(call_.operands[0].view.shape) / columns();
    task.epsilon = float(call_.attrs.scalar);
    if (is_norm()) {
      task.gamma = pointer(1);
      task.beta = pointer(2);
      task.y = pointer(3);
      task.mean = pointer(4);
      task.rstd = pointer(5);
    } else {
      task.y = pointer(1);
    }
    gpu::Range range;
    range.group[0] = kLanes;
    range.groups[0] = size_t(std::min(task.rows, clusters_at_once_) * plan_.groups);
    range.local_bytes = size_t(plan_.kept_bytes);
    (*kernel_)(stream, range, task);
  }

 private:
  // Groups walk along the rows, so that one copies while the other of its multiprocessor computes.
  // Larger clusters do not fill a card: there, each takes a row.
  int64_t clusters_at_once(const gpu::DeviceTraits& device) const {
    if (plan_.groups > 2) return std::numeric_limits<int64_t>::max();
    return kGroupsAtOnce * device.compute_units / plan_.groups;
  }

  bool is_norm() const { return call_.kernel == "layer_norm"; }
  int64_t columns() const { return call_.operands[0].view.shape.back(); }
  DType dtype() const { return call_.operands[0].dtype; }

  const KernelCall call_;
  const LongRowsPlan plan_;
  const int64_t clusters_at_once_;
  std::unique_ptr<gpu::Kernel> kernel_;
};

}  // namespace

int64_t longest_row(const gpu::DeviceTraits& device) {
  if (device.cluster_groups < kMostGroups) return 0;
  // Less what dividing rounds up.
  const int64_t rounded = kPieceStep * size_of(DType::f32) + 2 * kUnitBytes;
  return std::max<int64_t>(0, kMostGroups * (piece_bytes(device.local_bytes_asked) - rounded));
}

LongRowsPlan plan_long_rows(int64_t columns, DType dtype, int64_t shared_bytes) {
  LongRowsPlan plan;
  for (;; plan.groups *= 2) {
    const int64_t share = (columns + plan.groups - 1) / plan.groups;
    plan.piece = (share + kPieceStep - 1) / kPieceStep * kPieceStep;
    // One unit more: a piece may begin and end inside of one.
    plan.kept_bytes = plan.piece * size_of(dtype) + kUnitBytes;
    if (plan.kept_bytes <= piece_bytes(shared_bytes) || plan.groups == kMostGroups) return plan;
  }
}

std::unique_ptr<gpu::GpuExecutable> make_long_rows(gpu::Session& session, const KernelCall& call) {
  const size_t expected = call.kernel == "layer_norm" ? 6 : 2;
  if (call.operands.size() != expected) {
    fail(call.kernel, ": expected ", expected, " operands, got ", call.operands.size());
  }
  const auto& [dtype, view] = call.operands[0];
  const int64_t columns = view.shape.back();
  const bool fits =
      columns > kShortRow && columns * size_of(dtype) <= longest_row(session.device());
  if (!fits || !(dtype == DType::f32 || is_half(dtype))) return nullptr;
  return std::make_unique<LongRows>(session, call);
}

}  // namespace tessera::cuda
