#include "tessera/tensor/autograd.h"

#include <atomic>
#include <unordered_map>

#include "tessera/autodiff/backward.h"
#include "tessera/graph/build.h"
#include "tessera/graph/rewrite.h"
#include "tessera/tensor/eval.h"

namespace tessera {

namespace {

std::vector<Tensor> to_tensors(const std::vector<Value>& values) {
  std::vector<Tensor> tensors;
  for (const Value& value : values) tensors.emplace_back(value);
  return tensors;
}

std::vector<Value> to_values(std::span<const Tensor> tensors) {
  std::vector<Value> values;
  for (const Tensor& tensor : tensors) values.push_back(tensor.value());
  return values;
}

void check_loss(const char* op, const Tensor& loss) {
  if (loss.numel() != 1) fail_here(op, ": expected a loss of one element, got ", loss.shape());
  if (!is_float(loss.dtype()))
    fail_here(op, ": expected a floating-point loss, got ", loss.dtype());
}

std::vector<Value> gradients(const Tensor& loss, std::span<const Value> inputs) {
  const Value one = graph::full(loss.value().type(), 1);
  return backward(std::span(&loss.value(), 1), std::span(&one, 1), inputs);
}

// Equal literals are one node, so a gradient with respect to one would count the uses of all.
void check_has_data(const Value& input) {
  for (const NodePtr& node : topological_order(std::span(&input, 1))) {
    if (node->op == Op::leaf) return;
  }
  fail_here(
      "grad: an input is made of literals alone (ones, zeros, full, arange): write .detach() "
      "behind it to differentiate by it");
}

uint64_t next_number() {
  static std::atomic<uint64_t> number{1};
  return number.fetch_add(1);
}

// Values built before the function ran that it used all the same are inputs too; otherwise the
// region would reach back through them.
std::vector<Value> enter_captured(const std::vector<Value>& outputs, uint64_t first_id,
                                  uint64_t region) {
  std::unordered_map<Value, Value> entered;
  auto is_before = [&](const Node& node) { return node.id < first_id; };
  Attrs attrs;
  attrs.bits = region;
  for (const NodePtr& node : topological_order(outputs, is_before)) {
    const bool marker = node->op == Op::region_enter && node->attrs.bits == region;
    if (marker || !is_before(*node) || info(node->op).kind == OpKind::source) continue;
    for (const Value& value : graph::outputs_of(node)) {
      entered.emplace(value, Value{make_node(Op::region_enter, {value}, attrs), 0});
    }
  }
  return entered.empty() ? outputs : substitute(outputs, entered);
}

}  // namespace

std::vector<Tensor> grad(In loss, std::span<const Tensor> inputs) {
  check_loss("grad", loss);
  const std::vector<Value> values = to_values(inputs);
  std::vector<Value> result = gradients(loss, values);
  for (size_t i = 0; i < result.size(); ++i) {
    if (!is_float(values[i].dtype())) {
      fail_here("grad: expected a floating-point input, got ", values[i].dtype());
    }
    if (result[i]) {
      check_has_data(values[i]);
    } else {
      result[i] = graph::full(values[i].type(), 0);
    }
  }
  return to_tensors(result);
}

std::vector<Tensor> grad(In loss, std::initializer_list<Tensor> inputs) {
  return grad(loss, std::span(inputs.begin(), inputs.size()));
}

Tensor grad(In loss, In input) {
  const Tensor inputs[] = {input};
  return grad(loss, inputs)[0];
}

void backward(In loss) {
  check_loss("backward", loss);
  Pending& p = pending();
  std::vector<std::shared_ptr<VarState>> vars;
  std::vector<Value> values;
  for (const NodePtr& node : topological_order(std::span(&loss.value(), 1))) {
    if (node->op != Op::leaf) continue;
    const auto slot = value_slot({node, 0});
    const auto var = slot ? slot->var.lock() : nullptr;
    if (!var || !var->trainable || var->pending) continue;
    read_slot(*slot);  // throws when a step has replaced what the loss was built on
    vars.push_back(var);
    values.push_back({node, 0});
  }
  // A Var that has been assigned stands for its new value, not for the storage that still waits.
  for (const auto& var : p.assigned) {
    if (!var->trainable) continue;
    vars.push_back(var);
    values.push_back(var->pending);
  }
  using namespace graph;
  const std::vector<Value> result = gradients(loss, values);
  for (size_t i = 0; i < vars.size(); ++i) {
    if (!result[i]) continue;
    Value& total = vars[i]->writable_grad();
    total = total ? total + cast(result[i], total.dtype()) : result[i];
  }
  keep_readable(loss);
}

Tensor stop_gradient(In x) { return Tensor(graph::stop_gradient(x.value())); }

std::vector<Tensor> custom_vjp(const TensorFunction& forward, const TensorVjp& vjp,
                               const std::vector<Tensor>& inputs) {
  std::vector<Value> values = to_values(inputs);
  const std::vector<Value> outputs = to_values(forward(inputs));
  values.insert(values.end(), outputs.begin(), outputs.end());
  auto function = std::make_shared<const VjpFunction>(
      [vjp](const std::vector<Value>& x, const std::vector<Value>& y, const std::vector<Value>& g) {
        std::vector<Value> result;
        for (const Tensor& t : vjp(to_tensors(x), to_tensors(y), to_tensors(g))) {
          result.push_back(t.defined() ? t.value() : Value{});
        }
        return result;
      });
  Attrs attrs;
  attrs.axis = int64_t(inputs.size());
  attrs.bits = next_number();  // two functions are never the same one
  return to_tensors(
      graph::outputs_of(make_node(Op::custom_vjp, std::move(values), attrs, std::move(function))));
}

std::vector<Tensor> checkpoint(const TensorFunction& fn, const std::vector<Tensor>& inputs) {
  Attrs attrs;
  attrs.bits = next_number();  // inner regions get higher numbers, as rematerialize expects
  std::vector<Tensor> entered;
  for (const Tensor& input : inputs) {
    entered.emplace_back(Value{make_node(Op::region_enter, {input.value()}, attrs), 0});
  }
  const uint64_t first_id = make_leaf({}).node->id;  // everything built from here on is newer
  const std::vector<Value> outputs = enter_captured(to_values(fn(entered)), first_id, attrs.bits);
  std::vector<Tensor> result;
  for (const Value& output : outputs) {
    result.emplace_back(Value{make_node(Op::region_exit, {output}, attrs), 0});
  }
  return result;
}

}  // namespace tessera
