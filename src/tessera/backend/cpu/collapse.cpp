#include "tessera/backend/cpu/collapse.h"

#include <algorithm>
#include <limits>

namespace tessera::cpu {

namespace {

bool has_address(const IrInst& inst) {
  return inst.kind == IrKind::load || inst.kind == IrKind::store || inst.kind == IrKind::index;
}

bool mask_is_full(const IrInst& inst, int d, int64_t extent) {
  return !inst.masked || (inst.low[d] <= 0 && inst.high[d] >= extent);
}

int64_t saturating_multiply(int64_t a, int64_t b) {
  int64_t result;
  if (!__builtin_mul_overflow(a, b, &result)) return result;
  return (a < 0) == (b < 0) ? std::numeric_limits<int64_t>::max()
                            : std::numeric_limits<int64_t>::min();
}

// Whether dimension d + 1 runs on where d ends, for this instruction.
bool walks_as_one(const IrInst& inst, int d, int64_t extent) {
  return inst.strides[d] == inst.strides[d + 1] * extent && mask_is_full(inst, d + 1, extent);
}

bool can_merge(const KernelIR& ir, int d) {
  return std::all_of(ir.insts.begin(), ir.insts.end(), [&](const IrInst& inst) {
    return !has_address(inst) || walks_as_one(inst, d, ir.extents[d + 1]);
  });
}

bool can_drop(const KernelIR& ir, int d) {
  return ir.extents[d] == 1 && std::all_of(ir.insts.begin(), ir.insts.end(), [&](const auto& inst) {
           return !has_address(inst) || mask_is_full(inst, d, 1);
         });
}

void erase_dimension(KernelIR& ir, int d) {
  ir.extents.erase(d);
  for (IrInst& inst : ir.insts) {
    if (!has_address(inst)) continue;
    inst.strides.erase(d);
    if (!inst.masked) continue;
    inst.low.erase(d);
    inst.high.erase(d);
  }
}

void merge(KernelIR& ir, int d) {
  const int64_t extent = ir.extents[d + 1];
  ir.extents[d] *= extent;
  for (IrInst& inst : ir.insts) {
    if (!has_address(inst)) continue;
    inst.strides[d] = inst.strides[d + 1];
    if (!inst.masked) continue;
    inst.low[d] = saturating_multiply(inst.low[d], extent);
    inst.high[d] = saturating_multiply(inst.high[d], extent);
  }
  erase_dimension(ir, d + 1);
}

}  // namespace

Collapsed collapse(const KernelIR& given) {
  Collapsed result{given, 1};
  KernelIR& ir = result.ir;
  const bool map = ir.is_map();
  auto after_erase = [&](int d) {
    if (d < ir.inner) --ir.inner;
  };
  for (int d = ir.extents.rank() - 1; d >= 1; --d) {
    // A reduction over one point still needs its inner dimension.
    const bool last_inner = d >= ir.inner && ir.extents.rank() - ir.inner == 1;
    if (!can_drop(ir, d) || (last_inner && !map)) continue;
    erase_dimension(ir, d);
    after_erase(d);
  }
  for (int d = ir.extents.rank() - 2; d >= 0; --d) {
    const bool across = d < ir.inner && d + 1 >= ir.inner;
    if ((across && !map) || !can_merge(ir, d)) continue;
    if (d == 0) result.scale0 *= ir.extents[1];
    merge(ir, d);
    after_erase(d + 1);
  }
  if (map) ir.inner = ir.extents.rank() - 1;
  return result;
}

}  // namespace tessera::cpu
