#include <algorithm>

#include "tessera/compile/passes.h"
#include "tessera/compile/rewrite_function.h"
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
  if (node->op != Op::custom && kernel_ops && target.has(row.kernel) && !empty) return {};
  const NodePtr rebuilt = make_node(node->op, inputs, node->attrs);
  return lower_outputs(composite(*rebuilt), target, kernel_ops);
}

std::vector<Value> lower_outputs(std::span<const Value> outputs, const Target& target,
                                 bool kernel_ops) {
  return rewrite(outputs, [&](const NodePtr& node, const std::vector<Value>& inputs) {
    return lower_node(node, inputs, target, kernel_ops);
  });
}

}  // namespace

GraphFunction lower(const GraphFunction& function, const Target& target, bool kernel_ops) {
  return rewrite_function(function, [&](const NodePtr& node, const std::vector<Value>& inputs) {
    return lower_node(node, inputs, target, kernel_ops);
  });
}

}  // namespace tessera
