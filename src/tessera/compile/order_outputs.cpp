// A copy, or a concat, that only moves what a kernel wrote, is no kernel where that one writes with
// any strides: it stores its outputs in the order in which they are read.
#include <algorithm>

#include "tessera/compile/passes.h"
#include "tessera/compile/views.h"

namespace tessera {

namespace {

// The ops whose kernels do so, and how many of their first outputs.
struct OrderedOp {
  Op op;
  int outputs;
};
constexpr OrderedOp kOrderedOps[] = {{Op::attention, 1}, {Op::attention_backward, 3}};

bool is_ordered(Op op, int out) {
  const auto* const it = std::ranges::find(kOrderedOps, op, &OrderedOp::op);
  return it != std::end(kOrderedOps) && out < it->outputs;
}

// An output as it is read by the instance that moves it, and where that puts it.
struct Part {
  Operand source;
  View to;

  std::optional<View> moved(const View& view) const { return rearranged(view, source.view, to); }
};

class OutputOrderer {
 public:
  explicit OutputOrderer(Instances& instances) : instances_(instances) {}

  void run() {
    for (size_t i = 0; i < instances_.list.size(); ++i) {
      const std::vector<Part> parts = parts_of(instances_.list[i]);
      if (!parts.empty() && can_place(int(i), parts)) place(int(i), parts);
    }
    remove_dead(instances_);
  }

 private:
  Instance& inst(int i) { return instances_.list[size_t(i)]; }

  bool is_copy(const Instance& x) {
    if (x.op != Op::cast) return false;
    const Operand& o = x.inputs[0];
    return inst(o.inst).types[size_t(o.out)].dtype == x.types[0].dtype;
  }

  // What an instance moves; nothing where it does more.
  std::vector<Part> parts_of(const Instance& x) {
    if (!is_copy(x) && x.op != Op::concat) return {};
    const View whole = contiguous_view(x.types[0].shape);
    if (x.op != Op::concat) return {{x.inputs[0], whole}};
    std::vector<Part> parts;
    int64_t before = 0;
    for (const Operand& o : x.inputs) {
      const int axis = int(x.attrs.axis);
      parts.push_back({o, {o.view.shape, whole.strides, before * whole.strides[axis]}});
      before += o.view.shape[axis];
    }
    return parts;
  }

  bool is_result(int i, int out) const {
    const auto is_it = [&](const Operand& o) { return o.inst == i && o.out == out; };
    return std::ranges::any_of(instances_.outputs, is_it) ||
           std::ranges::any_of(instances_.assigns, is_it, &Instances::Assign::value);
  }

  bool can_place(int mover, const std::vector<Part>& parts) {
    if (is_result(mover, 0)) return false;
    std::vector<int> outs;
    for (const Part& part : parts) {
      const Operand& o = part.source;
      if (o.inst != parts[0].source.inst || !is_ordered(inst(o.inst).op, o.out)) return false;
      if (std::ranges::find(outs, o.out) != outs.end() || is_result(o.inst, o.out)) return false;
      if (!can_move(mover, part, parts.size() > 1)) return false;
      outs.push_back(o.out);
    }
    return true;
  }

  // Whether all that read the output can do so once it is elsewhere, and its rows stay whole.
  bool can_move(int mover, const Part& part, bool is_joined) {
    const Operand& source = part.source;
    const Stored now = stored(inst(source.inst), source.out);
    if (now.elements != numel(source.view.shape)) return false;
    // Two orders that are wanted: the first.
    const bool is_there = is_contiguous(source.view), was_moved = !is_contiguous(now.view);
    if (was_moved && !is_there && !is_joined) return false;
    const std::optional<View> then = part.moved(now.view);
    if (!then || then->strides[then->shape.rank() - 1] != 1) return false;
    for (size_t i = 0; i < instances_.list.size(); ++i) {
      const Instance& x = instances_.list[i];
      for (const Operand& o : x.inputs) {
        if (int(i) == mover || o.inst != source.inst || o.out != source.out) continue;
        const std::optional<View> view = part.moved(o.view);
        const bool any = info(x.op).layout != OpLayout::contiguous;
        if (!view || !(any || is_packed(*view))) return false;
      }
    }
    return true;
  }

  void place(int mover, const std::vector<Part>& parts) {
    Instance& moved = inst(mover);
    moved.inputs.clear();  // it is dead
    const int from = parts[0].source.inst, home = parts[0].source.out;
    for (Instance& x : instances_.list) {
      for (Operand& o : x.inputs) {
        if (o.inst == mover) {
          o = {from, home, o.view};
          continue;
        }
        for (const Part& part : parts) {
          if (o.inst != from || o.out != part.source.out) continue;
          o.view = *part.moved(o.view);
          break;
        }
      }
    }
    const int64_t elements = numel(moved.types[0].shape);
    for (const Part& part : parts) {
      const int out = part.source.out;
      const View view = *part.moved(stored(inst(from), out).view);
      store(inst(from), out, {home, view, elements});
    }
    if (moved.op == Op::cast && !moved.late) --instances_.copies;
  }

  Instances& instances_;
};

}  // namespace

void order_outputs(Instances& instances) { OutputOrderer(instances).run(); }

}  // namespace tessera
