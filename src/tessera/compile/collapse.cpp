#include "tessera/compile/collapse.h"

namespace tessera {

namespace {

bool has_strides(const IrInst& inst) {
  return inst.kind == IrKind::load || inst.kind == IrKind::store || inst.kind == IrKind::index;
}

void drop_dimension(KernelIR& ir, int d) {
  for (IrInst& inst : ir.insts) {
    if (inst.masked) {
      // The one coordinate is 0; outside the mask the dimension must stay to say so.
      if (inst.low[d] > 0 || inst.high[d] < 1) return;
    }
  }
  ir.extents.erase(d);
  if (d < ir.inner) --ir.inner;
  for (IrInst& inst : ir.insts) {
    if (has_strides(inst)) inst.strides.erase(d);
    if (inst.masked) {
      inst.low.erase(d);
      inst.high.erase(d);
    }
  }
}

bool can_merge(const KernelIR& ir, int d) {
  for (const IrInst& inst : ir.insts) {
    if (has_strides(inst) && inst.strides[d] != inst.strides[d + 1] * ir.extents[d + 1]) {
      return false;
    }
    if (!inst.masked) continue;
    for (const int k : {d, d + 1}) {
      if (inst.low[k] > 0 || inst.high[k] < ir.extents[k]) return false;
    }
  }
  return true;
}

void merge(KernelIR& ir, int d) {
  for (IrInst& inst : ir.insts) {
    if (has_strides(inst)) inst.strides.erase(d);
    if (inst.masked) {
      inst.low.erase(d);
      inst.high.erase(d);
      inst.low[d] = 0;
      inst.high[d] = ir.extents[d] * ir.extents[d + 1];
    }
  }
  ir.extents[d + 1] *= ir.extents[d];
  ir.extents.erase(d);
  if (d < ir.inner) --ir.inner;
}

void append_dimension(KernelIR& ir, int at) {
  ir.extents.insert(at, 1);
  for (IrInst& inst : ir.insts) {
    if (has_strides(inst)) inst.strides.insert(at, 0);
    if (inst.masked) {
      inst.low.insert(at, 0);
      inst.high.insert(at, 1);
    }
  }
}

}  // namespace

void collapse(KernelIR& ir) {
  for (int i = ir.extents.rank() - 1; i >= 0; --i) {
    if (ir.extents[i] == 1) drop_dimension(ir, i);
  }
  for (int i = ir.extents.rank() - 2; i >= 0; --i) {
    if (i + 1 == ir.inner && !ir.is_map()) continue;
    if (can_merge(ir, i)) merge(ir, i);
  }
  if (ir.is_map()) {
    if (ir.extents.empty()) append_dimension(ir, 0);
    ir.inner = ir.extents.rank() - 1;
  } else if (ir.extents.rank() == ir.inner) {
    append_dimension(ir, ir.inner);  // every folded axis had extent 1
  }
}

}  // namespace tessera
