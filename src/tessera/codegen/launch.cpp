// What a launcher asks: how many groups, which indices, how many splits.
#include <algorithm>
#include <cstdlib>
#include <limits>

#include "tessera/codegen/plan.h"

namespace tessera {

namespace {

// Both APIs take 31 bits in their first dimension; the kernels walk on from there.
constexpr int64_t kMostGroups = std::numeric_limits<int32_t>::max();

int64_t divide_up(int64_t a, int64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

// Products that stay at the highest value when they pass it.
int64_t times(int64_t a, int64_t b) {
  int64_t result = 0;
  return __builtin_mul_overflow(a, b, &result) ? std::numeric_limits<int64_t>::max() : result;
}

// Points of the dimensions in [begin, end), with `extent0` as the first extent.
int64_t count(const KernelIR& ir, int begin, int end, int64_t extent0) {
  int64_t points = 1;
  for (int i = begin; i < end; ++i) points = times(points, i == 0 ? extent0 : ir.extents[i]);
  return points;
}

int64_t row_count(const KernelIR& ir, int64_t extent0) { return count(ir, 0, ir.inner, extent0); }

}  // namespace

int64_t RenderedKernel::group_count(const KernelIR& ir, int64_t extent0, int64_t splits) const {
  const int end = ir.is_map() ? ir.extents.rank() : ir.inner;
  const int64_t groups = divide_up(count(ir, 0, end, extent0), per_group);
  return std::min(groups, kMostGroups / (splits * cluster)) * splits * cluster;
}

int64_t RenderedKernel::fold_group_count(const KernelIR& ir, int64_t extent0) const {
  return group_count(ir, extent0);
}

int64_t RenderedKernel::scratch_bytes(const KernelIR& ir, int64_t extent0, int64_t splits) const {
  return 8 * scratch_values * times(row_count(ir, extent0), splits);
}

bool fits_narrow_index(const KernelIR& ir, int64_t extent0) {
  // Half the range: a loop adds the stride of the launch before it compares.
  constexpr int64_t kMostPoints = int64_t{1} << 30;
  if (count(ir, 0, ir.extents.rank(), extent0) > kMostPoints) return false;
  for (const IrInst& inst : ir.insts) {
    const bool moves =
        inst.kind == IrKind::load || inst.kind == IrKind::store || inst.kind == IrKind::index;
    if (!moves) continue;
    int64_t low = inst.offset, high = inst.offset;
    for (int i = 0; i < ir.extents.rank(); ++i) {
      const int64_t last = (i == 0 ? extent0 : ir.extents[i]) - 1;
      const int64_t reach = times(std::abs(inst.strides[i]), std::max<int64_t>(last, 0));
      if (reach > kMostPoints) return false;
      (inst.strides[i] < 0 ? low : high) += inst.strides[i] < 0 ? -reach : reach;
    }
    if (low < -kMostPoints || high > kMostPoints) return false;
  }
  return true;
}

bool can_split(const KernelIR& ir) {
  if (ir.is_map()) return false;
  const std::vector<Phase> phases = plan_phases(ir);
  return phases.size() == 2 && !phases[0].reduces.empty();
}

int64_t split_count(const KernelIR& ir, int64_t extent0, int64_t groups_wanted, int64_t points) {
  if (!can_split(ir)) return 1;
  const Plan plan = make_plan(ir, {.split = true});
  const int64_t groups = divide_up(row_count(ir, extent0), plan.rows_per_group());
  const int64_t cols = count(ir, ir.inner, ir.extents.rank(), extent0);
  const int64_t all = times(cols, plan.rows_per_group());
  const int64_t most = std::max(all / points, std::min(all / kSplitPoints, groups_wanted / 4));
  return std::clamp<int64_t>(groups_wanted / std::max<int64_t>(groups, 1), 1,
                             std::max<int64_t>(most, 1));
}

}  // namespace tessera
