#include <algorithm>
#include <optional>

#include "tessera/compile/passes.h"
#include "tessera/compile/rewrite_function.h"
#include "tessera/compile/users.h"
#include "tessera/graph/build.h"
#include "tessera/graph/composite.h"
#include "tessera/graph/custom.h"

namespace tessera {

namespace {

// A composite may contain kernel ops of its own; lowered until none is left that the target lacks.
std::vector<Value> lower_outputs(std::span<const Value> outputs, const Target& target,
                                 bool kernel_ops);

std::vector<Value> lower_node(const NodePtr& node, const std::vector<Value>& inputs,
                              const Target& target, bool kernel_ops) {
  switch (node->op) {
    case Op::stop_gradient: return {inputs[0]};
    case Op::custom_vjp: return {inputs.begin() + node->attrs.axis, inputs.end()};
    case Op::sum:
    case Op::prod:
      if (numel(inputs[0].shape()) > 0) return {};
      return {graph::full(node->types[0], node->op == Op::sum ? 0 : 1)};
    case Op::pad: {
      if (numel(inputs[0].shape()) > 0) return {};
      Attrs attrs;
      attrs.dtype = node->types[0].dtype;
      attrs.bits = node->attrs.bits;
      return {graph::broadcast_to({make_node(Op::constant, {}, attrs), 0}, node->types[0].shape)};
    }
    case Op::matmul:
      if (inputs[0].shape().back() == 0) return {graph::full(node->types[0], 0)};
      return {};
    default: break;
  }
  const OpInfo& row = info(node->op);
  if (row.kind != OpKind::kernel) return {};
  if (node->op == Op::custom) {
    const std::string_view device = target.device;
    const CustomDefinition& definition = custom_definition(node->attrs);
    const bool has_kernel = definition.runs_on(device.substr(0, device.find(':')));
    if (has_kernel && (kernel_ops || !definition.composite)) return {};
  }
  // A kernel over no rows or no columns has nothing to tune; plain ops know what to do.
  const bool empty = std::any_of(inputs.begin(), inputs.end(),
                                 [](const Value& x) { return numel(x.shape()) == 0; });
  const bool has_kernel = node->op != Op::custom && target.has(row.kernel, inputs[0].dtype());
  if (kernel_ops && has_kernel && !empty) return {};
  const NodePtr rebuilt = make_node(node->op, inputs, node->attrs);
  return lower_outputs(composite(*rebuilt), target, kernel_ops);
}

std::vector<Value> lower_outputs(std::span<const Value> outputs, const Target& target,
                                 bool kernel_ops) {
  return rewrite(outputs, [&](const NodePtr& node, const std::vector<Value>& inputs) {
    return lower_node(node, inputs, target, kernel_ops);
  });
}

bool passes_on(const Node& node) {
  const OpKind kind = info(node.op).kind;
  return (kind == OpKind::move || kind == OpKind::marker) && node.inputs().size() == 1;
}

// Whether packed rows stay packed.
bool keeps_rows(const Node& node) {
  if (info(node.op).kind != OpKind::move || node.op == Op::reshape) return true;
  if (node.op != Op::slice || node.attrs.c[0] != 1) return false;
  const Shape &before = node.inputs()[0].shape(), &after = node.types[0].shape;
  for (int i = 1; i < after.rank(); ++i) {
    if (before[i] != after[i]) return false;
  }
  return true;
}

// Whether a generated kernel of `node` would compute one of its neighbours, too, or read its input
// where a named one needs a copy.
bool has_generated_neighbours(const Node& node, const Users& users) {
  Value x = node.inputs()[0];
  for (; passes_on(*x.node); x = x.node->inputs()[0]) {
    if (!keeps_rows(*x.node)) return true;
  }
  const OpKind from = info(x.node->op).kind;
  if (from == OpKind::scalar || from == OpKind::assemble || from == OpKind::index) return true;
  std::vector<const Node*> stack = {&node};
  while (!stack.empty()) {
    const Node* const each = stack.back();
    stack.pop_back();
    for (const Node* user : users.of(*each)) {
      const OpKind to = info(user->op).kind;
      if (to == OpKind::scalar || to == OpKind::reduce) return true;
      if (passes_on(*user)) stack.push_back(user);
    }
  }
  return false;
}

// Generated kernels are the faster ones where every access is of 16 bytes and values of half types
// need not be spread over registers (`bench_gpu softmax_32768`, `BENCH_LONG_ROWS=0`).
bool suits_registers(DType dtype, int64_t columns) {
  constexpr int64_t kAccessBytes = 16;
  return dtype == DType::f32 && columns * size_of(dtype) % kAccessBytes == 0;
}

// Softmax and layer_norm of rows for which the target has kernels, where no more is to be had by
// a generated one.
bool is_of_long_rows(const Node& node, const Target& target, const Users& users) {
  if (node.op != Op::softmax && node.op != Op::layer_norm) return false;
  const Value& x = node.inputs()[0];
  if (numel(x.shape()) == 0) return false;
  const int64_t columns = x.shape().back();
  return target.is_long_row(x.dtype(), columns) && !suits_registers(x.dtype(), columns) &&
         !has_generated_neighbours(node, users);
}

}  // namespace

GraphFunction lower(const GraphFunction& function, const Target& target, bool kernel_ops) {
  std::optional<Users> users;
  if (kernel_ops && target.long_row_bytes > 0) users.emplace(function);
  return rewrite_function(function, [&](const NodePtr& node, const std::vector<Value>& inputs) {
    if (users && is_of_long_rows(*node, target, *users)) return std::vector<Value>{};
    return lower_node(node, inputs, target, kernel_ops);
  });
}

}  // namespace tessera
