#include "tessera/tensor/custom_op.h"

#include <cctype>

#include "tessera/graph/build.h"
#include "tessera/graph/custom.h"
#include "tessera/tensor/eval.h"
#include "tessera/tensor/op_support.h"

namespace tessera {

namespace {

bool is_identifier(const std::string& name) {
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0])) != 0) return false;
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_') return false;
  }
  return true;
}

std::vector<Tensor> to_tensors(const std::vector<Value>& values) {
  std::vector<Tensor> tensors;
  for (const Value& value : values) tensors.emplace_back(value);
  return tensors;
}

std::vector<Value> to_values(const std::vector<Tensor>& tensors) {
  std::vector<Value> values;
  for (const Tensor& tensor : tensors)
    values.push_back(tensor.defined() ? tensor.value() : Value{});
  return values;
}

void check(const CustomOp& op) {
  if (!is_identifier(op.name)) {
    fail("custom_op: expected a name of letters, digits and '_', got '", op.name, "'");
  }
  if (!op.types) fail("custom_op: '", op.name, "' has no rule for the types of its outputs");
  if (!op.cpu && op.cuda.empty() && op.opencl.empty() && !op.composite) {
    fail("custom_op: '", op.name, "' has neither a kernel nor a composite");
  }
}

Tensor only_output(const std::vector<Tensor>& outputs) {
  if (outputs.size() != 1) fail_here("custom_op: expected one output, got ", outputs.size());
  return outputs[0];
}

}  // namespace

CustomFunction custom_op(CustomOp op) {
  check(op);
  CustomDefinition definition;
  definition.kernel =
      std::make_shared<const CustomKernel>(CustomKernel{op.name, op.cpu, op.cuda, op.opencl});
  definition.types = op.types;
  if (op.vjp) {
    definition.vjp = [vjp = op.vjp](const std::vector<Value>& x, const std::vector<Value>& y,
                                    const std::vector<Value>& g) {
      return to_values(vjp(to_tensors(x), to_tensors(y), to_tensors(g)));
    };
  }
  if (op.composite) {
    definition.composite = [composite = op.composite](const std::vector<Value>& inputs) {
      const TraceGuard trace;  // it may be wanted while a Program is being compiled
      return to_values(composite(to_tensors(inputs)));
    };
  }
  CustomFunction function;
  function.number_ = register_custom(std::move(definition));
  return function;
}

std::vector<Tensor> CustomFunction::operator()(const std::vector<Tensor>& inputs,
                                               std::source_location line) const {
  set_line(line);
  std::vector<Value> values;
  for (const Tensor& input : inputs) values.push_back(input.value());
  Attrs attrs;
  attrs.bits = number_;
  return to_tensors(graph::outputs_of(make_node(Op::custom, std::move(values), attrs)));
}

Tensor CustomFunction::operator()(In a) const {
  return only_output((*this)(std::vector<Tensor>{a}));
}
Tensor CustomFunction::operator()(In a, In b) const {
  return only_output((*this)(std::vector<Tensor>{a, b}));
}

}  // namespace tessera
