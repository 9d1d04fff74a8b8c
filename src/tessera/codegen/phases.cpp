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
      if (arg >= 0 && follow(arg)) marked[size_t(arg)] = true;
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

// Everything that ends a loop.
std::vector<int> roots_of(const Phase& phase) {
  std::vector<int> roots = phase.reduces;
  roots.insert(roots.end(), phase.stores.begin(), phase.stores.end());
  return roots;
}

std::vector<int> listed(const std::vector<bool>& marked) {
  std::vector<int> result;
  for (int i = 0; i < int(marked.size()); ++i) {
    if (marked[size_t(i)]) result.push_back(i);
  }
  return result;
}

// The elem instructions that the roots of one loop read, in order.
std::vector<int> needed_elems(const KernelIR& ir, const std::vector<int>& roots) {
  std::vector<bool> needed(ir.insts.size(), false);
  for (const int root : roots) needed[size_t(root)] = true;
  mark_reads(ir, needed, [&ir](int arg) { return at(ir, arg).level == IrLevel::elem; });
  for (const int root : roots) needed[size_t(root)] = false;
  return listed(needed);
}

bool is_free(const IrInst& inst) {
  return inst.kind == IrKind::constant || inst.kind == IrKind::index;
}

}  // namespace

std::vector<Phase> plan_phases(const KernelIR& ir) {
  std::vector<bool> live(ir.insts.size(), false);
  for (size_t i = 0; i < live.size(); ++i) live[i] = ir.insts[i].kind == IrKind::store;
  mark_reads(ir, live, [](int) { return true; });

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
  if (loops > 0) phases[size_t(loops) - 1].stores = stores;
  for (Phase& phase : phases) phase.elems = needed_elems(ir, roots_of(phase));
  return phases;
}

void keep_values(const KernelIR& ir, std::vector<Phase>& phases, Keep what) {
  const auto may_keep = [&](const IrInst& inst) {
    return what == Keep::all ? !is_free(inst) : inst.kind == IrKind::load;
  };
  constexpr size_t kNever = SIZE_MAX;
  std::vector<size_t> first(ir.insts.size(), kNever);  // the loop that computes each
  for (size_t loop = phases.size(); loop-- > 0;) {
    for (const int i : phases[loop].elems) first[size_t(i)] = loop;
  }
  std::vector<bool> kept(ir.insts.size(), false);
  for (size_t loop = 0; loop < phases.size(); ++loop) {
    Phase& phase = phases[loop];
    std::vector<bool> needed(ir.insts.size(), false), recalled(ir.insts.size(), false);
    const std::vector<int> roots = roots_of(phase);
    for (const int root : roots) needed[size_t(root)] = true;
    mark_reads(ir, needed, [&](int arg) {
      if (at(ir, arg).level != IrLevel::elem) return false;
      const bool is_known = first[size_t(arg)] < loop && may_keep(at(ir, arg));
      if (is_known) recalled[size_t(arg)] = kept[size_t(arg)] = true;
      return !is_known;
    });
    for (const int root : roots) needed[size_t(root)] = false;
    phase.elems = listed(needed);
    phase.recalled = listed(recalled);
  }
  for (Phase& phase : phases) {
    for (const int i : phase.elems) {
      if (kept[size_t(i)]) phase.kept.push_back(i);
    }
  }
}

}  // namespace tessera
