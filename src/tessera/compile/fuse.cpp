#include <bit>
#include <map>

#include "tessera/compile/emit.h"
#include "tessera/compile/passes.h"
#include "tessera/graph/custom.h"

namespace tessera {

bool may_share(const KernelNode& k, size_t input, size_t output) {
  const OperandView &in = k.call.operands[input], &out = k.call.operands[output];
  if (size_of(in.dtype) != size_of(out.dtype)) return false;
  if (!k.call.ir) {
    const bool lie_alike = is_contiguous(in.view) || in.view == out.view;
    return int(input) == k.in_place && output == first_output(k) + size_t(k.in_place_output) &&
           lie_alike;
  }
  if (!k.call.ir->is_map()) return false;  // may load again after it has stored
  const PartOperand from = part_operand(k.call, input), to = part_operand(k.call, output);
  if (from.part != to.part) return false;
  const IrInst* store = nullptr;
  for (const IrInst& inst : k.call.ir->insts) {
    if (inst.kind == IrKind::store && inst.operand == int(to.operand)) store = &inst;
  }
  for (const IrInst& inst : k.call.ir->insts) {
    if (inst.kind != IrKind::load || inst.operand != int(from.operand)) continue;
    if (inst.masked || inst.indexed || inst.strides != store->strides ||
        inst.offset != store->offset) {
      return false;
    }
  }
  return true;
}

namespace {

using ValueId = std::pair<int, int>;  // (instance, output)

class Fuser {
 public:
  Fuser(const Instances& instances, bool enabled, int64_t parameters)
      : instances_(instances), grouping_(group_instances(instances, enabled, parameters)) {}

  KernelGraph run() {
    for (size_t i = 0; i < instances_.externals.size(); ++i) {
      const Type& type = instances_.externals[i];
      add_buffer(BufferKind::external, int(i), type, numel(type.shape));
    }
    for (size_t i = 0; i < instances_.list.size(); ++i) {
      if (instances_.list[i].op == Op::leaf) buffers_[{int(i), 0}] = instances_.list[i].external;
    }
    find_stored();
    for (const Group& group : grouping_.groups) {
      if (group.generated) {
        add_generated(group);
      } else {
        add_named(group.members[0]);
      }
    }
    for (const auto& assign : instances_.assigns) {
      graph_.assigns.push_back({assign.external, buffer_of({assign.value.inst, assign.value.out})});
    }
    for (size_t i = 0; i < instances_.outputs.size(); ++i) {
      const Operand& o = instances_.outputs[i];
      const int buffer = buffer_of({o.inst, o.out});
      graph_.buffers[size_t(buffer)].kind = BufferKind::output;
      graph_.buffers[size_t(buffer)].index = int(i);
      graph_.outputs.push_back(buffer);
    }
    graph_.after.resize(graph_.kernels.size());
    return std::move(graph_);
  }

 private:
  // A member is stored when another kernel, an output or an assign needs it.
  void find_stored() {
    stored_.assign(instances_.list.size(), 0);
    for (size_t i = 0; i < instances_.list.size(); ++i) {
      for (const Operand& o : instances_.list[i].inputs) {
        if (grouping_.group_of[i] != grouping_.group_of[size_t(o.inst)])
          stored_[size_t(o.inst)] = 1;
      }
    }
    for (const Operand& o : instances_.outputs) stored_[size_t(o.inst)] = 1;
    for (const auto& assign : instances_.assigns) stored_[size_t(assign.value.inst)] = 1;
  }

  int add_buffer(BufferKind kind, int index, const Type& type, int64_t elements) {
    PlannedBuffer buffer;
    buffer.kind = kind;
    buffer.index = index;
    buffer.bytes = byte_size({type.dtype, {elements}});
    buffer.type = type;
    graph_.buffers.push_back(buffer);
    return int(graph_.buffers.size()) - 1;
  }

  int buffer_of(ValueId id) {
    const Instance& source = instances_.list[size_t(id.first)];
    const Stored where = stored(source, id.second);
    id.second = where.home;
    const auto it = buffers_.find(id);
    if (it != buffers_.end()) return it->second;
    const int buffer =
        add_buffer(BufferKind::temporary, 0, source.types[size_t(where.home)], where.elements);
    buffers_[id] = buffer;
    if (source.op == Op::constant) fill(source, buffer);
    return buffer;
  }

  // A kernel that wants a constant in memory gets one element of it.
  void fill(const Instance& source, int buffer) {
    auto ir = std::make_shared<KernelIR>();
    const DType dtype = source.types[0].dtype;
    ir->name = "fill";
    ir->extents = {1};
    ir->operands = {{dtype, true}};
    IrInst value;
    value.kind = IrKind::constant;
    value.dtype = compute_type(dtype);
    value.bits = source.attrs.bits;
    IrInst store;
    store.kind = IrKind::store;
    store.dtype = value.dtype;
    store.operand = 0;
    store.args[0] = 0;
    store.strides = {0};
    ir->insts = {value, store};
    KernelNode node;
    node.call.ir = std::move(ir);
    node.call.operands = {{dtype, contiguous_view({})}};
    node.buffers = {buffer};
    node.scope = source.scope;
    node.line = source.line;
    node.label = "fill";
    graph_.kernels.push_back(std::move(node));
  }

  void add_generated(const Group& group) {
    EmittedKernel emitted = emit_kernel(instances_, grouping_, group, stored_);
    KernelNode node;
    node.call.outputs = int(emitted.outputs.size());
    for (const auto& ids : {emitted.inputs, emitted.outputs}) {
      for (const ValueId& id : ids) {
        const Type& type = instances_.list[size_t(id.first)].types[size_t(id.second)];
        node.call.operands.push_back({type.dtype, contiguous_view(type.shape)});
        node.buffers.push_back(buffer_of(id));
      }
    }
    node.label = emitted.ir.name;
    node.call.ir = std::make_shared<const KernelIR>(std::move(emitted.ir));
    const Instance& named = instances_.list[size_t(naming_member(group))];
    node.scope = named.scope;
    node.line = named.line;
    node.late = true;
    for (const int member : group.members) node.late &= instances_.list[size_t(member)].late;
    graph_.kernels.push_back(std::move(node));
  }

  // The member whose place stands for the kernel's: one that may meet a wrong index, else the last.
  int naming_member(const Group& group) const {
    for (const int member : group.members) {
      if (info(instances_.list[size_t(member)].op).kind == OpKind::index) return member;
    }
    return group.members.back();
  }

  void add_named(int index) {
    const Instance& x = instances_.list[size_t(index)];
    KernelNode node;
    node.call.kernel = std::string(info(x.op).kernel);
    node.call.outputs = int(x.types.size());
    node.call.attrs.axis = x.attrs.axis;
    const bool attends = x.op == Op::attention || x.op == Op::attention_backward;
    if (x.op == Op::layer_norm || attends) {
      node.call.attrs.scalar = scalar_as_double(DType::f64, x.attrs.bits);
    }
    if (attends && !x.attrs.a.empty()) node.call.attrs.rate = std::bit_cast<double>(x.attrs.a[0]);
    for (const Operand& o : x.inputs) {
      const DType dtype = instances_.list[size_t(o.inst)].types[size_t(o.out)].dtype;
      node.call.operands.push_back({dtype, o.view});
      node.buffers.push_back(buffer_of({o.inst, o.out}));
    }
    for (size_t i = 0; i < x.types.size(); ++i) {
      node.call.operands.push_back({x.types[i].dtype, stored(x, int(i)).view});
      node.buffers.push_back(x.used[i] ? buffer_of({index, int(i)}) : -1);
    }
    node.scope = x.scope;
    node.line = x.line;
    node.label = std::string(name(x.op));
    if (x.op == Op::custom) {
      node.call.custom = custom_definition(x.attrs).kernel;
      node.label = node.call.custom->name;
    }
    node.late = x.late;
    if (info(x.op).kind == OpKind::update) node.in_place = 0;
    if (x.op == Op::matmul_add) node.in_place = 2;
    if (x.op == Op::cross_entropy) {
      node.in_place = 0;
      node.in_place_output = 1;
    }
    graph_.kernels.push_back(std::move(node));
  }

  const Instances& instances_;
  const Grouping grouping_;
  std::vector<char> stored_;
  std::map<ValueId, int> buffers_;
  KernelGraph graph_;
};

}  // namespace

KernelGraph fuse(const Instances& instances, bool enabled, int64_t parameters) {
  return Fuser(instances, enabled, parameters).run();
}

}  // namespace tessera
