#include "tessera/graph/verify.h"

#include "tessera/base/attention_options.h"
#include "tessera/graph/infer.h"

namespace tessera {

namespace {

std::string check_value(const Value& value) {
  if (!value) return "is empty";
  const size_t outputs = value.node->types.size();
  if (value.out < 0 || size_t(value.out) >= outputs) {
    return cat("is output ", value.out, " of a node that has ", outputs);
  }
  return {};
}

std::string check_inputs(const NodeRecord& record) {
  const int arity = info(record.op).arity;
  if (arity >= 0 && record.inputs.size() != size_t(arity)) {
    return cat("expected ", arity, " inputs, got ", record.inputs.size());
  }
  for (size_t i = 0; i < record.inputs.size(); ++i) {
    const std::string problem = check_value(record.inputs[i]);
    if (!problem.empty()) return cat("input ", i, " ", problem);
    const uint64_t id = record.inputs[i].node->id;
    if (id >= record.id) return cat("input ", i, " has id ", id, ", not below ", record.id);
  }
  return {};
}

std::string check_outputs(const NodeRecord& record) {
  const int outputs = info(record.op).outputs;
  if (outputs >= 0 && record.types.size() != size_t(outputs)) {
    return cat("expected ", outputs, " outputs, got ", record.types.size());
  }
  if (record.types.empty()) return "expected at least 1 output, got 0";
  for (const Type& type : record.types) {
    for (const int64_t extent : type.shape) {
      if (extent < 0) return cat("a negative extent in ", type);
    }
  }
  return {};
}

std::string check_vjp(const NodeRecord& record) {
  const bool needed = record.op == Op::custom_vjp;
  if (needed && !record.has_vjp) return "a custom_vjp without its backward function";
  if (!needed && record.has_vjp) return "a backward function outside custom_vjp";
  return {};
}

std::string check_axis(int64_t axis, int rank) {
  if (axis >= 0 && axis < rank) return {};
  return cat("axis ", axis, " is not one of ", rank, " axes");
}

std::string check_reduced_axes(const NodeRecord& record) {
  const Dims& axes = record.attrs.a;
  int64_t previous = -1;
  for (const int64_t axis : axes) {
    const std::string problem = check_axis(axis, record.inputs[0].shape().rank());
    if (!problem.empty()) return problem;
    if (axis <= previous) return cat("axes ", axes, " are not sorted");
    previous = axis;
  }
  if (record.op == Op::argmax && axes.rank() != 1) return cat("expected one axis, got ", axes);
  return {};
}

std::string check_attention(const NodeRecord& record) {
  const size_t expected =
      (record.op == Op::attention ? 3u : 6u) + size_t(attention_operands(record.attrs.axis));
  if (record.inputs.size() != expected) {
    return cat("expected ", expected, " inputs for options ", record.attrs.axis, ", got ",
               record.inputs.size());
  }
  const int rates = record.attrs.axis & kAttentionDropout ? 1 : 0;
  if (record.attrs.a.rank() == rates) return {};
  return cat("expected ", rates, " rates of dropout, got ", record.attrs.a.rank());
}

// What the type rules take for granted: they were written for callers who keep it.
std::string check_attributes(const NodeRecord& record) {
  const Attrs& attrs = record.attrs;
  switch (record.op) {
    case Op::sum:
    case Op::prod:
    case Op::max:
    case Op::min:
    case Op::argmax: return check_reduced_axes(record);
    case Op::iota: return check_axis(attrs.axis, attrs.a.rank());
    case Op::dynamic_slice:
      if (attrs.a.rank() != 1) return cat("expected one size, got ", attrs.a);
      return check_axis(attrs.axis, record.inputs[0].shape().rank());
    case Op::window:
      if (attrs.a.rank() != 2) return cat("expected a size and a step, got ", attrs.a);
      return check_axis(attrs.axis, record.inputs[0].shape().rank());
    case Op::topk:
      if (attrs.a.rank() != 1) return cat("expected one k, got ", attrs.a);
      return {};
    case Op::attention:
    case Op::attention_backward: return check_attention(record);
    case Op::gather:
    case Op::scatter_add:
    case Op::scatter:
    case Op::cumsum:
    case Op::cumprod:
    case Op::dynamic_update_slice: return check_axis(attrs.axis, record.inputs[0].shape().rank());
    case Op::concat:
      if (record.inputs.empty()) return {};
      return check_axis(attrs.axis, record.inputs[0].shape().rank());
    case Op::custom_vjp:
      if (attrs.axis >= 0 && size_t(attrs.axis) < record.inputs.size()) return {};
      return cat("expected fewer than ", record.inputs.size(), " inputs to be x, got ", attrs.axis);
    default: return {};
  }
}

std::string check_types(const NodeRecord& record) {
  std::vector<Type> expected;
  if (record.op == Op::leaf) {
    expected = {{record.attrs.dtype, record.attrs.a}};
  } else {
    try {
      expected = infer_types(record.op, record.inputs, record.attrs);
    } catch (const Error& error) {
      return error.what();
    }
  }
  if (expected.size() != record.types.size()) {
    return cat("expected ", expected.size(), " outputs, got ", record.types.size());
  }
  for (size_t i = 0; i < expected.size(); ++i) {
    if (record.types[i] != expected[i]) {
      return cat("output ", i, " is ", record.types[i], ", the rules give ", expected[i]);
    }
  }
  return {};
}

}  // namespace

std::string verify_node(const NodeRecord& record) {
  if (static_cast<int>(record.op) >= kOpCount) {
    return cat("op ", static_cast<int>(record.op), " is outside the table");
  }
  // In this order: each check may rely on the ones before it.
  for (const auto check : {check_inputs, check_outputs, check_vjp, check_attributes, check_types}) {
    std::string problem = check(record);
    if (!problem.empty()) return problem;
  }
  return {};
}

std::string verify_graph(std::span<const Value> outputs) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::string problem = check_value(outputs[i]);
    if (!problem.empty()) return cat("output ", i, " ", problem);
  }
  for (const NodePtr& node : topological_order(outputs)) {
    const std::string problem = verify_node(
        {node->op, node->inputs(), node->attrs, node->types, node->id, node->vjp != nullptr});
    if (!problem.empty()) return cat("node ", node->id, " (", name(node->op), "): ", problem);
  }
  return {};
}

}  // namespace tessera
