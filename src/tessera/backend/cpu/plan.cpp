#include "tessera/backend/cpu/plan.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "tessera/backend/cpu/chain.h"
#include "tessera/backend/cpu/collapse.h"
#include "tessera/backend/cpu/slots.h"
#include "tessera/backend/cpu/together.h"

namespace tessera::cpu {

namespace {

Storage storage_of(DType dtype) {
  if (dtype == DType::f16) return Storage::f16;
  if (dtype == DType::bf16) return Storage::bf16;
  switch (size_of(dtype)) {
    case 1: return Storage::bytes1;
    case 4: return Storage::bytes4;
    default: return Storage::bytes8;
  }
}

// The bytes of a value of `dtype`, from scalar_bits.
uint64_t representation(DType dtype, uint64_t bits) {
  uint64_t result = 0;
  visit(dtype, [&]<class T>() {
    if constexpr (std::is_same_v<T, f16> || std::is_same_v<T, bf16>) {
      TESSERA_ASSERT(!"a register of a half type");
    } else {
      const T value =
          is_float(dtype) ? T(scalar_as_double(dtype, bits)) : T(scalar_as_int(dtype, bits));
      std::memcpy(&result, &value, sizeof value);
    }
  });
  return result;
}

uint64_t identity_of(ReduceOp op, DType dtype) {
  uint64_t result = 0;
  visit(dtype, [&]<class T>() {
    if constexpr (std::is_same_v<T, f16> || std::is_same_v<T, bf16>) {
      TESSERA_ASSERT(!"a register of a half type");
    } else {
      using Limits = std::numeric_limits<T>;
      const T lowest = Limits::has_infinity ? T(-Limits::infinity()) : Limits::lowest();
      const T highest = Limits::has_infinity ? Limits::infinity() : Limits::max();
      T value = lowest;  // max and argmax
      if (op == ReduceOp::sum) value = T(0);
      if (op == ReduceOp::prod) value = T(1);
      if (op == ReduceOp::min) value = highest;
      std::memcpy(&result, &value, sizeof value);
    }
  });
  return result;
}

int arity_of(const IrInst& inst) {
  return int(
      std::count_if(std::begin(inst.args), std::end(inst.args), [](int a) { return a >= 0; }));
}

class Planner {
 public:
  Planner(const KernelIR& given, const LoopTable& loops) : loops_(loops) {
    Collapsed collapsed = collapse(given);
    plan_.ir = std::move(collapsed.ir);
    plan_.scale0 = collapsed.scale0;
    plan_.map = plan_.ir.is_map();
  }

  Plan run() {
    assign_levels();
    assign_depths();
    assign_row_slots();
    make_steps();
    protect_loads();
    choose_order();
    plan_.whole = make_program(false);
    plan_.chunked = make_program(true);
    choose_ahead(plan_);
    fill_helpers();
    return std::move(plan_);
  }

 private:
  const KernelIR& ir() const { return plan_.ir; }
  int count() const { return int(ir().insts.size()); }
  const IrInst& inst(int i) const { return ir().insts[size_t(i)]; }
  Level level(int i) const { return levels_[size_t(i)]; }

  // The dimensions an address depends on decide its level. Dimension 0 has an unknown extent; it is
  // an inner one where every axis is folded, and there a value per row depends on none.
  Level address_level(const IrInst& it) const {
    Level result = Level::uniform;
    const bool per_row = it.level == IrLevel::row && !plan_.map;
    for (int d = 0; d < (per_row ? ir().inner : ir().extents.rank()); ++d) {
      const int64_t extent = ir().extents[d];
      const bool moves = it.strides[d] != 0 && (d == 0 || extent != 1);
      const bool cuts = it.masked && (d == 0 || it.low[d] > 0 || it.high[d] < extent);
      if (!moves && !cuts) continue;
      result = std::max(result, d < ir().inner ? Level::row : Level::point);
    }
    return result;
  }

  Level level_of(const IrInst& it) const {
    if (it.kind == IrKind::store) return it.level == IrLevel::row ? Level::row : Level::point;
    if (it.kind == IrKind::reduce) return Level::row;
    Level result = Level::uniform;
    if (it.kind == IrKind::load || it.kind == IrKind::index) result = address_level(it);
    for (int a : it.args) {
      if (a >= 0) result = std::max(result, level(a));
    }
    return result;
  }

  void assign_levels() {
    for (const IrInst& it : ir().insts) {
      levels_.push_back(level_of(it));
      Register reg;
      reg.level = levels_.back();
      reg.size = size_of(it.kind == IrKind::store ? DType::f32 : it.dtype);
      reg.is_constant = it.kind == IrKind::constant;
      if (reg.is_constant) reg.constant = representation(it.dtype, it.bits);
      plan_.registers.push_back(reg);
    }
  }

  // How many reductions lie one behind the other before an instruction.
  void assign_depths() {
    for (const IrInst& it : ir().insts) {
      int depth = 0;
      for (int a : it.args) {
        if (a >= 0) depth = std::max(depth, depths_[size_t(a)]);
      }
      depths_.push_back(depth + (it.kind == IrKind::reduce ? 1 : 0));
    }
    for (int i = 0; i < count(); ++i) {
      const bool reduces = inst(i).kind == IrKind::reduce;
      if (reduces) phase_count_ = std::max(phase_count_, depths_[size_t(i)]);
      if (is_point_store(i)) phase_count_ = std::max(phase_count_, depths_[size_t(i)] + 1);
    }
  }

  bool is_point_store(int i) const {
    return inst(i).kind == IrKind::store && level(i) == Level::point;
  }

  void assign_row_slots() {
    for (int i = 0; i < count(); ++i) {
      if (level(i) != Level::row || inst(i).kind == IrKind::store) continue;
      Register& reg = plan_.registers[size_t(i)];
      reg.row_slot = plan_.row_bytes;
      plan_.row_bytes += reg.size;
    }
  }

  int add_access(const IrInst& it) {
    Access access;
    access.offset = it.offset;
    access.strides = it.strides;
    access.masked = it.masked;
    access.low = it.low;
    access.high = it.high;
    access.indexed = it.indexed;
    access.index_stride = it.index_stride;
    access.index_limit = it.index_limit;
    if (it.kind != IrKind::index) {
      const DType dtype = ir().operands[size_t(it.operand)].dtype;
      const int storage = int(storage_of(dtype));
      access.operand = it.operand;
      access.memory_size = size_of(dtype);
      access.converts = is_half(dtype);
      access.move = it.kind == IrKind::load ? loops_.load[storage] : loops_.store[storage];
      access.gather = loops_.gather[storage];
      access.fill = loops_.load[int(storage_of(compute_type(dtype)))];
    }
    plan_.accesses.push_back(access);
    return int(plan_.accesses.size()) - 1;
  }

  void set_reduce(Step& step, const IrInst& it) {
    const DType from = inst(it.args[0]).dtype;
    step.fold = loops_.fold[int(it.reduce)][int(from)];
    step.combine = loops_.combine[int(it.reduce)][int(from)];
    step.identity = identity_of(it.reduce, from);
    step.size = size_of(from);
    step.slot = plan_.registers[size_t(step.reg)].row_slot;
    if (it.reduce != ReduceOp::argmax) return;
    step.where_slot = step.slot;
    step.slot = plan_.row_bytes;
    plan_.row_bytes += step.size;
  }

  void set_cast(Step& step, const IrInst& it) {
    const DType from = inst(it.args[0]).dtype;
    if (it.round_to != it.dtype && is_half(it.round_to)) {
      step.round = it.round_to == DType::f16 ? loops_.round_f16 : loops_.round_bf16;
    }
    if (from != it.dtype || step.round == nullptr)
      step.cast = loops_.cast[int(from)][int(it.dtype)];
  }

  Step make_step(int i) {
    const IrInst& it = inst(i);
    Step step;
    step.kind = it.kind;
    step.level = level(i);
    step.reg = i;
    std::copy(std::begin(it.args), std::end(it.args), step.args);
    step.arity = arity_of(it);
    step.size = plan_.registers[size_t(i)].size;
    step.slot = plan_.registers[size_t(i)].row_slot;
    switch (it.kind) {
      case IrKind::constant: break;
      case IrKind::index:
      case IrKind::load:
      case IrKind::store: step.access = add_access(it); break;
      case IrKind::scalar: {
        const int typed = it.op == ScalarOp::where ? 1 : 0;
        step.scalar = loops_.scalar[int(it.op)][int(inst(it.args[typed]).dtype)];
        TESSERA_ASSERT(step.scalar != nullptr);
        break;
      }
      case IrKind::cast: set_cast(step, it); break;
      case IrKind::reduce: set_reduce(step, it); break;
    }
    return step;
  }

  void make_steps() {
    for (int i = 0; i < count(); ++i) {
      steps_.push_back(make_step(i));
      const bool computed = inst(i).kind != IrKind::constant;
      if (level(i) == Level::uniform && computed) plan_.once.push_back(steps_.back());
      if (level(i) == Level::point) ++plan_.point_steps;
    }
  }

  // Every other load is used up before the first store.
  void protect_loads() {
    const auto is_store = [](const Step& step) { return step.kind == IrKind::store; };
    if (std::count_if(steps_.begin(), steps_.end(), is_store) < 2) return;
    for (const Step& step : steps_) {
      if (!is_store(step)) continue;
      const Step& stored = steps_[size_t(step.args[0])];
      if (stored.kind == IrKind::load) plan_.accesses[size_t(stored.access)].must_copy = true;
    }
  }

  // Tiles are stored along whichever side more of the points' accesses are contiguous.
  void choose_order() {
    const int rank = ir().extents.rank(), inner = ir().inner;
    if (inner == 0) return;
    int rows = 0, columns = 0;
    for (int i = 0; i < count(); ++i) {
      const bool moves = inst(i).kind == IrKind::load || inst(i).kind == IrKind::store;
      if (!moves || level(i) != Level::point) continue;
      const int64_t along_row = inst(i).strides[rank - 1];
      const int64_t along_column = inst(i).strides[inner - 1];
      if (along_row == 1) ++rows;
      if (along_column == 1 && along_row != 1 && along_row != 0) ++columns;
    }
    if (plan_.map) {
      plan_.transposes = columns > 0;
    } else {
      plan_.inner_fast = rows >= columns;
    }
  }

  bool is_root(int i, int phase) const {
    if (is_point_store(i)) return phase == phase_count_ - 1;
    return inst(i).kind == IrKind::reduce && depths_[size_t(i)] == phase + 1;
  }

  // Marks the point-level instructions that the roots of `phase` need.
  std::vector<bool> needed_points(int phase) const {
    std::vector<bool> needed(size_t(count()), false);
    for (int i = count() - 1; i >= 0; --i) {
      if (!is_root(i, phase) && !needed[size_t(i)]) continue;
      for (int a : inst(i).args) {
        if (a >= 0 && level(a) == Level::point) needed[size_t(a)] = true;
      }
    }
    return needed;
  }

  std::vector<Step> phase_points(int phase, std::vector<bool>& done) const {
    const std::vector<bool> needed = needed_points(phase);
    std::vector<Step> result;
    for (int i = 0; i < count(); ++i) {
      const bool computes = needed[size_t(i)] && !done[size_t(i)];
      if (computes || (is_root(i, phase) && !is_point_store(i))) {
        result.push_back(steps_[size_t(i)]);
        done[size_t(i)] = true;
      }
    }
    for (int i = 0; i < count(); ++i) {
      if (is_root(i, phase) && is_point_store(i)) result.push_back(steps_[size_t(i)]);
    }
    return result;
  }

  Program make_program(bool chunked) const {
    Program program;
    std::vector<bool> done(size_t(count()), false);
    for (int p = 0; p <= phase_count_; ++p) {
      Phase phase;
      for (int i = 0; i < count(); ++i) {
        const bool here = std::min(depths_[size_t(i)], phase_count_) == p;
        if (level(i) == Level::row && inst(i).kind != IrKind::reduce && here) {
          phase.rows.push_back(steps_[size_t(i)]);
        }
      }
      if (chunked) std::fill(done.begin(), done.end(), false);
      if (p < phase_count_) phase.points = phase_points(p, done);
      program.phases.push_back(std::move(phase));
    }
    const std::vector<std::vector<int>> uses = join_steps(program, chunked);
    // Chunks decide the order in which sums are added up, which is not to change with how steps are
    // run.
    program.chunk_bytes = assign_point_slots(program, chunked);
    for (size_t p = 0; p < program.phases.size(); ++p) {
      program.phases[p].points = run_together(plan_, program.phases[p].points, uses[p]);
    }
    program.point_bytes = assign_point_slots(program, chunked);
    for (const Phase& phase : program.phases) {
      for (const Step& step : phase.points) program.written_bytes += written_bytes(plan_, step);
    }
    return program;
  }

  // Each of the program's phases on its own where it computes again what it needs, else all as one.
  // Returns the phases' uses of registers.
  std::vector<std::vector<int>> join_steps(Program& program, bool chunked) const {
    std::vector<std::vector<int>> result;
    std::vector<int> uses(size_t(count()), 0);
    auto count_uses = [&](const Phase& phase) {
      for (const Step& step : phase.points) {
        for (int a : step.args) uses[size_t(std::max(a, 0))] += a >= 0;
      }
    };
    if (!chunked) std::for_each(program.phases.begin(), program.phases.end(), count_uses);
    for (Phase& phase : program.phases) {
      if (chunked) std::fill(uses.begin(), uses.end(), 0);
      if (chunked) count_uses(phase);
      join_products(plan_, loops_, phase.points, uses);
      phase.points = join_chains(plan_, loops_, phase.points, uses);
      result.push_back(uses);
    }
    return result;
  }

  int assign_point_slots(Program& program, bool chunked) const {
    int bytes = 0;
    std::vector<Step*> sequence;
    for (Phase& phase : program.phases) {
      for (Step& step : phase.points) sequence.push_back(&step);
      if (!chunked && &phase != &program.phases.back()) continue;
      bytes = std::max(bytes, assign_slots(plan_, sequence));
      sequence.clear();
    }
    return bytes;
  }

  void fill_helpers() {
    plan_.spread[1] = loops_.load[int(Storage::bytes1)];
    plan_.spread[4] = loops_.load[int(Storage::bytes4)];
    plan_.spread[8] = loops_.load[int(Storage::bytes8)];
    plan_.find_outside = loops_.find_outside;
    plan_.stream_fence = loops_.stream_fence;
    plan_.iota = loops_.iota;
  }

  Plan plan_;
  const LoopTable& loops_;
  std::vector<Level> levels_;
  std::vector<int> depths_;
  std::vector<Step> steps_;
  int phase_count_ = 0;
};

}  // namespace

Plan make_plan(const KernelIR& ir, const LoopTable& loops) { return Planner(ir, loops).run(); }

}  // namespace tessera::cpu
