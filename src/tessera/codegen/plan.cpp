#include "tessera/codegen/plan.h"

#include <algorithm>
#include <bit>
#include <cstdlib>

namespace tessera {

namespace {

constexpr int kAccessBytes = 16;   // what a lane reads at once where memory allows
constexpr int kMaxWidth = 8;       // elements
constexpr int kMaxUnrolled = 256;  // instructions of a body, repeated `width` times
constexpr int kWideBytes = 256;    // of one lane's accesses, which are alive together
constexpr int kMaxKept = 32;       // values of one register that a lane keeps
constexpr int kKeptBytes = 256;    // that a lane keeps in all: 64 registers
constexpr int kTeam = 32;          // lanes that take a short row
constexpr int kColumns = 32;       // rows side by side that fill whole cache lines
constexpr int kPerPart = 8;        // inner points below which another part does not pay
constexpr int kManyLanes = 512;  // up to here registers hold as much a lane, twice on a GPU's unit

class Planner {
 public:
  Planner(const KernelIR& ir, const RenderOptions& options) : ir_(ir), options_(options) {}

  Plan run() {
    plan_.phases = plan_phases(ir_);
    plan_.group_size = options_.max_group_size;
    plan_.wide.assign(ir_.insts.size(), false);
    if (ir_.is_map()) {
      choose_width();
      choose_turns();
      return plan_;
    }
    plan_.spread = lies_in_columns() ? Spread::columns : Spread::rows;
    if (plan_.spread == Spread::columns) {
      choose_column_parts();
    } else {
      choose_width();
      choose_row_parts();
      choose_shift();
    }
    choose_kept();
    choose_cluster();
    choose_row_memory();
    return plan_;
  }

 private:
  bool is_unit(int dim) const { return dim > 0 && ir_.extents[dim] == 1; }

  // The dimension in [begin, end) that moves fastest; -1: none moves.
  int fastest(int begin, int end) const {
    for (int i = end - 1; i >= begin; --i) {
      if (!is_unit(i)) return i;
    }
    return -1;
  }
  int walked() const { return fastest(ir_.is_map() ? 0 : ir_.inner, ir_.extents.rank()); }

  int size(const IrInst& inst) const { return size_of(ir_.operands[size_t(inst.operand)].dtype); }

  static bool is_access(const IrInst& inst) {
    return (inst.kind == IrKind::load || inst.kind == IrKind::store) && inst.level == IrLevel::elem;
  }

  // Whether neighbouring rows, rather than neighbouring inner points, lie side by side in memory,
  // for most of the bytes.
  bool lies_in_columns() const {
    const int outer = fastest(0, ir_.inner), inner = walked();
    if (outer < 0 || inner < 0) return false;
    int64_t balance = 0;
    for (const IrInst& inst : ir_.insts) {
      if (!is_access(inst) || inst.indexed) continue;
      const int64_t across = std::abs(inst.strides[outer]), along = std::abs(inst.strides[inner]);
      if (across == 1 && along > 1) balance += size(inst);
      if (along == 1) balance -= size(inst);
    }
    return balance > 0;
  }

  // One access of `width` elements: they are neighbours, and each access is aligned.
  bool is_wide(const IrInst& inst, int width) const {
    if (!is_access(inst) || inst.masked || inst.indexed) return false;
    const int64_t unit = access_alignment(width, size(inst)) / size(inst);
    if (inst.strides[walked()] != 1 || inst.offset % unit != 0) return false;
    for (int i = 0; i < ir_.extents.rank(); ++i) {
      if (i != walked() && !is_unit(i) && inst.strides[i] % unit != 0) return false;
    }
    return true;
  }

  int wide_bytes(int width) const {
    int bytes = 0;
    for (const IrInst& inst : ir_.insts) bytes += is_wide(inst, width) ? width * size(inst) : 0;
    return bytes;
  }

  void choose_width() {
    if (options_.alignment < kAccessBytes || walked() < 0) return;
    const bool is_run_time = walked() == 0;
    int smallest = kAccessBytes, elems = 0;
    for (const Phase& phase : plan_.phases) elems = std::max(elems, int(phase.elems.size()));
    for (const IrInst& inst : ir_.insts) {
      if (is_wide(inst, 2)) smallest = std::min(smallest, size(inst));
    }
    int width = std::min(kMaxWidth, kAccessBytes / smallest);
    const auto is_too_much = [&] {
      const bool divides = is_run_time || ir_.extents[walked()] % width == 0;
      return !divides || elems * width > kMaxUnrolled || wide_bytes(width) > kWideBytes;
    };
    while (width > 1 && is_too_much()) width /= 2;
    if (width == 1) return;
    for (size_t i = 0; i < ir_.insts.size(); ++i) plan_.wide[i] = is_wide(ir_.insts[i], width);
    if (std::find(plan_.wide.begin(), plan_.wide.end(), true) == plan_.wide.end()) return;
    plan_.width = width;
    plan_.has_tail = is_run_time;
  }

  // What a lane has under way must fit its registers.
  void choose_turns() {
    if (options_.parts > 0) return;
    plan_.turns = plan_.width > 1 ? options_.turns : std::min(options_.turns, 1);
    while (plan_.turns > 1 && plan_.turns * wide_bytes_chosen() > kWideBytes) plan_.turns /= 2;
  }

  // Short rows: one warp or less each, so that folds need no barrier. Long ones: a group each.
  void choose_row_parts() {
    const int largest = options_.max_group_size;
    plan_.parts = largest;
    if (ir_.inner == 0) return;
    const int64_t chunks = (ir_.inner_count() + plan_.width - 1) / plan_.width;
    const int team = std::min(kTeam, largest);
    if (chunks * plan_.width <= int64_t{team} * kMaxKept) {
      plan_.parts = std::min(team, int(std::bit_ceil(uint64_t(chunks))));
      return;
    }
    int64_t wanted = int64_t(std::bit_ceil(uint64_t(chunks + 1) / 2));
    int64_t most = largest;
    const int64_t points = chunks * plan_.width;
    if (points > int64_t{largest} * kMaxKept) {
      const int64_t many = std::min(kManyLanes, options_.max_row_group);
      most = std::max<int64_t>(most, points <= many * kMaxKept ? many : options_.max_row_group);
    }
    plan_.group_size = plan_.parts = int(std::min(most, wanted));
  }

  // Of rows that start anywhere, those accesses are wide that start alike.
  void choose_shift() {
    if (plan_.width > 1 || options_.alignment < kAccessBytes || ir_.inner == 0 || options_.split) {
      return;
    }
    const int rank = ir_.extents.rank();
    if (!is_long() || fastest(ir_.inner, rank) != fastest_alone()) return;
    for (size_t i = 0; i < ir_.insts.size(); ++i) {
      const IrInst& inst = ir_.insts[i];
      if (!is_run(inst) || kAccessBytes % size(inst) != 0) continue;
      if (plan_.shifted < 0) {
        plan_.width = kAccessBytes / size(inst);
        if (plan_.width > kMaxWidth || plan_.width < 2) return reset_shift();
        plan_.shifted = int(i);
      }
      plan_.wide[i] = starts_like(inst, ir_.insts[size_t(plan_.shifted)]);
    }
    if (plan_.shifted < 0 || plan_.parts < 2 * plan_.width) return reset_shift();
    const int64_t accesses = ir_.inner_count() / plan_.width;
    if (accesses < 4 * plan_.parts || wide_bytes_chosen() > kWideBytes) reset_shift();
  }

  // Neighbouring inner points are neighbours in memory.
  bool is_run(const IrInst& inst) const {
    return is_access(inst) && !inst.masked && !inst.indexed && inst.strides[walked()] == 1;
  }

  bool is_long() const { return ir_.inner_count() > int64_t{options_.max_group_size} * kMaxKept; }

  void reset_shift() {
    plan_.shifted = -1;
    plan_.width = 1;
    plan_.wide.assign(ir_.insts.size(), false);
  }

  // The only inner dimension that moves; -1: there are several.
  int fastest_alone() const {
    int found = -1;
    for (int i = ir_.inner; i < ir_.extents.rank(); ++i) {
      if (is_unit(i)) continue;
      if (found >= 0) return -1;
      found = i;
    }
    return found;
  }

  bool starts_like(const IrInst& a, const IrInst& b) const {
    const int64_t unit = plan_.width;
    const auto differ = [unit](int64_t x, int64_t y) { return (x - y) % unit != 0; };
    if (differ(a.offset, b.offset)) return false;
    for (int i = 0; i < ir_.inner; ++i) {
      if (!is_unit(i) && differ(a.strides[i], b.strides[i])) return false;
    }
    return true;
  }

  int wide_bytes_chosen() const {
    int bytes = 0;
    for (size_t i = 0; i < ir_.insts.size(); ++i) {
      if (plan_.wide[i]) bytes += plan_.width * size(ir_.insts[i]);
    }
    return bytes;
  }

  // A row that the registers of one group do not hold is held by those of the fewest that do; one
  // that begins anywhere, element by element.
  void choose_cluster() {
    const int lanes = std::min(kManyLanes, options_.max_row_group);
    const bool is_shared = options_.cluster_groups > 1 && options_.parts == 0 && lanes >= kTeam;
    if (!is_shared || plan_.chunks > 0 || plan_.spread != Spread::rows || !is_long()) return;
    if (is_better_alone()) return;
    const Plan alone = plan_;
    if (plan_.shifted >= 0) reset_shift();
    for (int groups = 1; groups <= options_.cluster_groups; groups *= 2) {
      plan_.cluster = groups;
      plan_.group_size = lanes;
      plan_.parts = groups * lanes;
      choose_kept();
      if (plan_.chunks > 0) break;
    }
    if (plan_.chunks == 0 || plan_.cluster == 1) plan_ = alone;
  }

  // Halves take twice their bytes in registers: they stay in local memory where that holds a row.
  // So do rows that begin anywhere, but for one row alone, with addresses of one register each.
  bool is_better_alone() const {
    std::vector<Phase> phases = plan_.phases;
    const int64_t bytes = keep_in_memory(phases);
    const bool has_halves =
        std::ranges::any_of(phases[0].kept, [&](int i) { return size(ir_.insts[size_t(i)]) < 4; });
    if (has_halves && bytes <= options_.local_bytes) return true;
    const auto runs = std::ranges::count_if(
        ir_.insts, [&](const IrInst& inst) { return inst.kind == IrKind::load && is_run(inst); });
    return plan_.shifted >= 0 && (runs > 1 || !options_.narrow_index);
  }

  // The bytes of what `phases` then keep.
  int64_t keep_in_memory(std::vector<Phase>& phases) const {
    keep_values(ir_, phases, Keep::loads);
    int64_t bytes = 0;
    for (const Phase& phase : phases) {
      for (const int i : phase.kept) bytes += row_array_bytes(ir_, plan_, i);
    }
    return bytes;
  }

  // Lanes find again what they kept themselves, so that no one waits.
  void choose_row_memory() {
    if (plan_.phases.size() < 3 || ir_.inner == 0 || options_.split || plan_.chunks > 0) return;
    if (plan_.spread != Spread::rows || plan_.rows_per_group() != 1) return;
    std::vector<Phase> phases = plan_.phases;
    const int64_t bytes = keep_in_memory(phases);
    if (bytes == 0 || bytes > options_.local_bytes) return;
    plan_.phases = std::move(phases);
    plan_.row_bytes = bytes;
    plan_.reads_ahead = ir_.inner == 1 && options_.parts == 0;
  }

  void choose_column_parts() {
    const int64_t most = std::max(1, options_.max_group_size / kColumns);
    const auto useful = int64_t(std::bit_floor(uint64_t(ir_.inner_count() / kPerPart)));
    plan_.parts = int(std::clamp<int64_t>(useful, 1, most));
  }

  // A row that several loops read stays in registers where that takes few enough of them.
  void choose_kept() {
    if (plan_.phases.size() < 3 || ir_.inner == 0 || options_.split || plan_.shifted >= 0) return;
    const int64_t step = int64_t{plan_.parts} * plan_.width;
    const int64_t chunks = (ir_.inner_count() + step - 1) / step;
    const int lanes = plan_.parts / plan_.cluster;
    if (chunks * plan_.width > kMaxKept || lanes > kManyLanes) return;
    std::vector<Phase> phases = plan_.phases;
    keep_values(ir_, phases);
    int64_t bytes = 0;
    for (const Phase& phase : phases) bytes += kept_bytes(phase.kept) * chunks * plan_.width;
    const bool fits =
        plan_.cluster > 1 ? fits_together(phases, chunks * plan_.width) : bytes <= kKeptBytes;
    if (bytes == 0 || !fits) return;
    plan_.phases = std::move(phases);
    plan_.chunks = int(chunks);
  }

  int64_t kept_bytes(const std::vector<int>& insts) const {  // of one point
    int64_t bytes = 0;
    for (const int i : insts) bytes += std::max(4, size_of(ir_.insts[size_t(i)].dtype));
    return bytes;
  }

  // Whether registers hold what is alive between any two loops, `points` of it a lane.
  bool fits_together(const std::vector<Phase>& phases, int64_t points) const {
    std::vector<int> kept;
    for (size_t loop = 0; loop + 1 < phases.size(); ++loop) {
      kept.insert(kept.end(), phases[loop].kept.begin(), phases[loop].kept.end());
      std::erase_if(kept, [&](int i) {
        return std::none_of(
            phases.begin() + std::ptrdiff_t(loop) + 1, phases.end(),
            [i](const Phase& later) { return std::ranges::count(later.recalled, i); });
      });
      if (kept_bytes(kept) * points > 4 * kMaxKept) return false;
    }
    return true;
  }

  const KernelIR& ir_;
  const RenderOptions& options_;
  Plan plan_;
};

}  // namespace

int64_t row_array_bytes(const KernelIR& ir, const Plan& plan, int i) {
  const int size = size_of(ir.operands[size_t(ir.insts[size_t(i)].operand)].dtype);
  const int64_t elements = ir.inner_count() + (plan.shifted < 0 ? 0 : 2 * plan.width);
  return (elements * size + kAccessBytes - 1) / kAccessBytes * kAccessBytes;
}

int access_alignment(int width, int size) { return std::min(kAccessBytes, width * size); }

Plan make_plan(const KernelIR& ir, const RenderOptions& options) {
  return Planner(ir, options).run();
}

}  // namespace tessera
