#include "tessera/codegen/phases.h"

#include <algorithm>

namespace tessera {

namespace {

const IrInst& at(const KernelIR& ir, int i) { return ir.insts[size_t(i)]; }

// Marks what `marked` instructions read, backwards; `follow` says through which registers.
template <class Follow>
void mark_reads(const KernelIR& ir, std::vector<bool>& marked, Follow follow) {
  for (int i = int(ir.insts.size()) - 1; i >= 0; --i) {
    if (!marked[size_t(i)]) continue;
    for (const int arg : at(ir, i).args) {
      if (arg >= 0 && follow(at(ir, arg))) marked[size_t(arg)] = true;
    }
  }
}

// For each instruction the number of loops that must have ended before it can be computed.
std::vector<int> depths(const KernelIR& ir) {
  std::vector<int> depth(ir.insts.size(), 0);
  for (size_t i = 0; i < ir.insts.size(); ++i) {
    for (const int arg : ir.insts[i].args) {
      if (arg >= 0) depth[i] = std::max(depth[i], depth[size_t(arg)]);
    }
    if (ir.insts[i].kind == IrKind::reduce) ++depth[i];
  }
  return depth;
}

bool is_elem_store(const IrInst& inst) {
  return inst.kind == IrKind::store && inst.level == IrLevel::elem;
}

// The elem instructions that the roots of one loop read, in order.
std::vector<int> needed_elems(const KernelIR& ir, const std::vector<int>& roots) {
  std::vector<bool> needed(ir.insts.size(), false);
  for (const int root : roots) needed[size_t(root)] = true;
  mark_reads(ir, needed, [](const IrInst& inst) { return inst.level == IrLevel::elem; });
  for (const int root : roots) needed[size_t(root)] = false;
  std::vector<int> result;
  for (int i = 0; i < int(needed.size()); ++i) {
    if (needed[size_t(i)]) result.push_back(i);
  }
  return result;
}

}  // namespace

std::vector<Phase> plan_phases(const KernelIR& ir) {
  std::vector<bool> live(ir.insts.size(), false);
  for (size_t i = 0; i < live.size(); ++i) live[i] = ir.insts[i].kind == IrKind::store;
  mark_reads(ir, live, [](const IrInst&) { return true; });

  const std::vector<int> depth = depths(ir);
  int loops = 0;
  std::vector<int> stores;
  for (int i = 0; i < int(live.size()); ++i) {
    if (!live[size_t(i)]) continue;
    const IrInst& inst = at(ir, i);
    if (inst.kind == IrKind::reduce) loops = std::max(loops, depth[size_t(i)]);
    if (is_elem_store(inst)) {
      stores.push_back(i);
      loops = std::max(loops, depth[size_t(i)] + 1);
    }
  }

  std::vector<Phase> phases(size_t(loops) + 1);
  for (int i = 0; i < int(live.size()); ++i) {
    const IrInst& inst = at(ir, i);
    if (!live[size_t(i)] || inst.kind == IrKind::store || inst.level == IrLevel::elem) continue;
    if (inst.kind == IrKind::reduce) {
      phases[size_t(depth[size_t(i)]) - 1].reduces.push_back(i);
    } else {
      phases[size_t(depth[size_t(i)])].rows.push_back(i);
    }
  }
  for (size_t loop = 0; loop < size_t(loops); ++loop) {
    std::vector<int> roots = phases[loop].reduces;
    if (loop + 1 == size_t(loops)) roots.insert(roots.end(), stores.begin(), stores.end());
    phases[loop].elems = needed_elems(ir, roots);
  }
  return phases;
}

}  // namespace tessera
