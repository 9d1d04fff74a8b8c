#include "tessera/compile/emit.h"

#include <algorithm>

#include "tessera/compile/collapse.h"

namespace tessera {

namespace {

constexpr size_t kLongName = 60;

class Emitter {
 public:
  Emitter(const Instances& instances, const Grouping& grouping, const Group& group,
          const std::vector<char>& stored)
      : list_(instances.list), grouping_(grouping), group_(group), stored_(stored) {
    for (int i = 0; i < group.domain.rank(); ++i) {
      if (!group.axes.contains(i)) order_.push_back(i);
    }
    kernel_.ir.inner = order_.rank();
    for (const int64_t axis : group.axes) order_.push_back(axis);
  }

  EmittedKernel run() {
    KernelIR& ir = kernel_.ir;
    for (int i = 0; i < order_.rank(); ++i) ir.extents.push_back(group_.domain[int(order_[i])]);
    for (const int member : group_.members) emit_member(member);
    // All stores stand behind all loads: an output may share the memory of an input it replaces.
    for (const int member : group_.members) {
      if (stored_[size_t(member)]) emit_store(member);
    }
    ir.name = kernel_name();
    collapse(ir);
    return std::move(kernel_);
  }

 private:
  std::string label(const Instance& x) const {
    const bool copy = x.op == Op::cast && source_dtype(x.inputs[0]) == x.types[0].dtype;
    return copy ? "copy" : std::string(name(x.op));
  }

  // The ops in order, cut where it gets long.
  std::string kernel_name() const {
    std::string text;
    for (size_t i = 0; i < group_.members.size(); ++i) {
      if (text.size() > kLongName) return cat(text, "_and_", group_.members.size() - i, "_more");
      if (i > 0) text += '_';
      text += label(list_[size_t(group_.members[i])]);
    }
    return text;
  }

  DType source_dtype(const Operand& o) const {
    return list_[size_t(o.inst)].types[size_t(o.out)].dtype;
  }

  bool is_map() const { return group_.axes.empty(); }

  // Per-axis numbers of the domain in the order of the kernel's dimensions.
  Dims ordered(const Dims& dims) const {
    Dims result;
    for (const int64_t axis : order_) result.push_back(dims[int(axis)]);
    return result;
  }

  bool inner_is_zero(const Dims& strides) const {  // strides in kernel order
    for (int i = kernel_.ir.inner; i < strides.rank(); ++i) {
      if (strides[i] != 0 && kernel_.ir.extents[i] != 1) return false;
    }
    return true;
  }

  int push(const IrInst& inst) {
    kernel_.ir.insts.push_back(inst);
    return int(kernel_.ir.insts.size()) - 1;
  }

  int input_operand(const Operand& o) {
    const std::pair key(o.inst, o.out);
    auto& inputs = kernel_.inputs;
    const auto it = std::find(inputs.begin(), inputs.end(), key);
    if (it != inputs.end()) return int(it - inputs.begin());
    inputs.push_back(key);
    return kernel_.ir.add_operand(source_dtype(o), false);
  }

  IrInst load_inst(const Operand& o, const Dims& strides, int64_t offset) {
    IrInst inst;
    inst.kind = IrKind::load;
    inst.operand = input_operand(o);
    inst.dtype = compute_type(kernel_.ir.operands[size_t(inst.operand)].dtype);
    inst.strides = strides;
    inst.offset = offset;
    return inst;
  }

  int constant(DType dtype, uint64_t bits) {
    IrInst inst;
    inst.kind = IrKind::constant;
    inst.level = is_map() ? IrLevel::elem : IrLevel::row;
    inst.dtype = compute_type(dtype);
    inst.bits = bits;
    for (size_t i = 0; i < kernel_.ir.insts.size(); ++i) {
      const IrInst& other = kernel_.ir.insts[i];
      if (other.kind == inst.kind && other.dtype == inst.dtype && other.bits == bits) return int(i);
    }
    return push(inst);
  }

  // The register of an operand for a member of the given level.
  int value(const Operand& o, bool row) {
    const Instance& source = list_[size_t(o.inst)];
    if (source.op == Op::constant) return constant(source.types[0].dtype, source.attrs.bits);
    if (const auto it = registers_.find(o.inst); it != registers_.end()) return it->second;
    Dims strides;
    for (const int64_t axis : order_) {
      const bool scalar = o.view.shape.empty();  // 0-d operands repeat everywhere
      strides.push_back(scalar ? 0 : o.view.strides[int(axis)]);
    }
    for (int i = 0; i < strides.rank(); ++i) {
      if (kernel_.ir.extents[i] == 1) strides[i] = 0;
    }
    const bool row_level = !is_map() && (row || inner_is_zero(strides));
    if (row_level) {
      for (int i = kernel_.ir.inner; i < strides.rank(); ++i) strides[i] = 0;
    }
    IrInst inst = load_inst(o, strides, o.view.offset);
    inst.level = row_level ? IrLevel::row : IrLevel::elem;
    for (size_t i = 0; i < kernel_.ir.insts.size(); ++i) {
      const IrInst& other = kernel_.ir.insts[i];
      if (other.kind == IrKind::load && !other.masked && !other.indexed &&
          other.operand == inst.operand && other.strides == inst.strides &&
          other.offset == inst.offset && other.level == inst.level) {
        return int(i);
      }
    }
    return push(inst);
  }

  int cast_to(int reg, DType dtype, DType round_to, IrLevel level) {
    IrInst inst;
    inst.kind = IrKind::cast;
    inst.level = level;
    inst.dtype = dtype;
    inst.round_to = round_to;
    inst.args[0] = reg;
    return push(inst);
  }

  DType reg_dtype(int reg) const { return kernel_.ir.insts[size_t(reg)].dtype; }

  int as_i64(int reg) {
    if (reg_dtype(reg) == DType::i64) return reg;
    return cast_to(reg, DType::i64, DType::i64, kernel_.ir.insts[size_t(reg)].level);
  }

  void emit_member(int i) {
    const Instance& x = list_[size_t(i)];
    const bool row = grouping_.row[size_t(i)];
    const IrLevel level = row ? IrLevel::row : IrLevel::elem;
    registers_[i] = emit_value(x, row, level);
  }

  int emit_value(const Instance& x, bool row, IrLevel level) {
    IrInst inst;
    inst.level = level;
    inst.dtype = compute_type(x.types[0].dtype);
    if (is_scalar_fn(x.op)) {
      inst.kind = IrKind::scalar;
      inst.op = scalar_op(x.op);
      for (size_t k = 0; k < x.inputs.size(); ++k) inst.args[k] = value(x.inputs[k], row);
      return push(inst);
    }
    switch (x.op) {
      case Op::cast: return emit_cast(x, row, level);
      case Op::iota: return emit_iota(x, level);
      case Op::uniform: return emit_uniform(x, row, level);
      case Op::sum: return emit_reduce(x, ReduceOp::sum);
      case Op::prod: return emit_reduce(x, ReduceOp::prod);
      case Op::max: return emit_reduce(x, ReduceOp::max);
      case Op::min: return emit_reduce(x, ReduceOp::min);
      case Op::argmax: return emit_reduce(x, ReduceOp::argmax);
      case Op::pad:
        return emit_placed(x.inputs[0], x.attrs.a, constant(x.types[0].dtype, x.attrs.bits), level);
      case Op::concat: return emit_concat(x, level);
      case Op::gather: return emit_gather(x, row, level);
      case Op::dynamic_slice: return emit_dynamic_slice(x, row, level);
      default: break;
    }
    TESSERA_ASSERT(!"an op without generated code");
    return -1;
  }

  int emit_cast(const Instance& x, bool row, IrLevel level) {
    const int source = value(x.inputs[0], row);
    const DType in = source_dtype(x.inputs[0]), out = x.types[0].dtype;
    // Nothing to do: a copy, or a half value that is f32 in its register already. A level that
    // differs still needs a register of its own to be stored from.
    const bool same = in == out || (is_half(in) && out == DType::f32);
    if (same && kernel_.ir.insts[size_t(source)].level == level) return source;
    return cast_to(source, compute_type(out), out, level);
  }

  int emit_index(const Dims& strides, IrLevel level) {  // strides in kernel order
    IrInst inst;
    inst.kind = IrKind::index;
    inst.dtype = DType::i64;
    inst.level = level;
    inst.strides = strides;
    return push(inst);
  }

  int emit_iota(const Instance& x, IrLevel level) {
    Dims strides = Dims::filled(x.attrs.a.rank(), 0);
    strides[int(x.attrs.axis)] = 1;
    const int index = emit_index(level_strides(ordered(strides), level), level);
    const DType out = x.types[0].dtype;
    return out == DType::i64 ? index : cast_to(index, compute_type(out), out, level);
  }

  int emit_uniform(const Instance& x, bool row, IrLevel level) {
    const Dims strides = ordered(row_major_strides(x.types[0].shape));
    IrInst inst;
    inst.kind = IrKind::scalar;
    inst.op = ScalarOp::uniform;
    inst.dtype = DType::f32;
    inst.level = level;
    inst.args[0] = emit_index(level_strides(strides, level), level);
    inst.args[1] = value(x.inputs[0], row);
    inst.args[2] = value(x.inputs[1], row);
    return push(inst);
  }

  // Row-level accesses do not move with the folded axes.
  Dims level_strides(Dims strides, IrLevel level) const {
    for (int i = 0; i < strides.rank(); ++i) {
      const bool folded = level == IrLevel::row && i >= kernel_.ir.inner;
      if (folded || kernel_.ir.extents[i] == 1) strides[i] = 0;
    }
    return strides;
  }

  int emit_reduce(const Instance& x, ReduceOp op) {
    IrInst inst;
    inst.kind = IrKind::reduce;
    inst.level = IrLevel::row;
    inst.reduce = op;
    int source = value(x.inputs[0], false);
    // A broadcast input was loaded once per row; the fold needs it once per element.
    if (kernel_.ir.insts[size_t(source)].level == IrLevel::row) {
      source = cast_to(source, reg_dtype(source), reg_dtype(source), IrLevel::elem);
    }
    inst.args[0] = source;
    inst.dtype = op == ReduceOp::argmax ? DType::i64 : reg_dtype(source);
    return push(inst);
  }

  // Where the domain lies inside [before, before + extent), the operand; elsewhere `otherwise`.
  int emit_placed(const Operand& o, const Dims& before, int otherwise, IrLevel level) {
    const Dims shift = ordered(before), extents = ordered(o.view.shape);
    Dims strides = ordered(o.view.strides);
    int64_t offset = o.view.offset;
    for (int i = 0; i < strides.rank(); ++i) offset -= shift[i] * strides[i];
    IrInst inst = load_inst(o, level_strides(strides, level), offset);
    inst.level = level;
    inst.masked = true;
    inst.args[0] = otherwise;
    inst.low = shift;
    inst.high = shift;
    for (int i = 0; i < extents.rank(); ++i) {
      const bool folded = level == IrLevel::row && i >= kernel_.ir.inner;
      inst.high[i] += folded ? kernel_.ir.extents[i] : extents[i];
    }
    return push(inst);
  }

  int emit_concat(const Instance& x, IrLevel level) {
    int result = constant(x.types[0].dtype, scalar_bits(x.types[0].dtype, 0.0));
    Dims before = Dims::filled(x.types[0].shape.rank(), 0);
    for (const Operand& part : x.inputs) {
      const int64_t extent = part.view.shape[int(x.attrs.axis)];
      if (extent > 0) result = emit_placed(part, before, result, level);
      before[int(x.attrs.axis)] += extent;
    }
    return result;
  }

  int emit_gather(const Instance& x, bool row, IrLevel level) {
    const Operand& o = x.inputs[0];
    const int axis = int(x.attrs.axis);
    const int index = as_i64(value(x.inputs[1], row));
    Dims strides = o.view.strides;
    const int64_t step = strides[axis];
    strides[axis] = 0;
    return emit_indexed(o, strides, index, step, o.view.shape[axis], level);
  }

  int emit_dynamic_slice(const Instance& x, bool row, IrLevel level) {
    const Operand& o = x.inputs[0];
    const int axis = int(x.attrs.axis);
    const int start = as_i64(value(x.inputs[1], row));
    return emit_indexed(o, o.view.strides, start, o.view.strides[axis],
                        o.view.shape[axis] - x.attrs.a[0] + 1, level);
  }

  int emit_indexed(const Operand& o, const Dims& strides, int index, int64_t step, int64_t limit,
                   IrLevel level) {
    IrInst inst = load_inst(o, level_strides(ordered(strides), level), o.view.offset);
    inst.level = level;
    inst.indexed = true;
    inst.args[1] = index;
    inst.index_stride = step;
    inst.index_limit = limit;
    return push(inst);
  }

  void emit_store(int i) {
    const Instance& x = list_[size_t(i)];
    const bool row = grouping_.row[size_t(i)];
    IrInst inst;
    inst.kind = IrKind::store;
    inst.level = row ? IrLevel::row : IrLevel::elem;
    inst.args[0] = registers_.at(i);
    inst.dtype = reg_dtype(inst.args[0]);
    inst.operand = kernel_.ir.add_operand(x.types[0].dtype, true);
    inst.strides = level_strides(ordered(row_major_strides(x.types[0].shape)), inst.level);
    kernel_.outputs.emplace_back(i, 0);
    push(inst);
  }

  const std::vector<Instance>& list_;
  const Grouping& grouping_;
  const Group& group_;
  const std::vector<char>& stored_;
  Dims order_;  // axes of the domain in kernel order: kept ones, then folded ones
  std::map<int, int> registers_;
  EmittedKernel kernel_;
};

}  // namespace

EmittedKernel emit_kernel(const Instances& instances, const Grouping& grouping, const Group& group,
                          const std::vector<char>& stored) {
  return Emitter(instances, grouping, group, stored).run();
}

}  // namespace tessera
