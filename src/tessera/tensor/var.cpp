#include "tessera/tensor/var.h"

#include <cstring>

#include "tessera/tensor/compiled.h"
#include "tessera/tensor/device.h"
#include "tessera/tensor/eval.h"

namespace tessera {

namespace {

VarState& checked(const std::shared_ptr<VarState>& state) {
  if (!state) fail("Var: expected a variable, got an empty handle");
  return *state;
}

// The flush that writes the value may also replace the Var whose storage holds it now, as in a
// swap: what value() gives then is a reshape to the same shape, which is computed, instead of a
// leaf.
Value unless_stored(const Value& value) {
  if (value.node->op != Op::leaf) return value;
  Attrs attrs;
  attrs.a = value.shape();
  return {make_node(Op::reshape, {value}, attrs), 0};
}

// What a thread assigned it must also write; here nobody would.
void check_same_thread(const VarState& state) {
  if (state.pending && state.pending_in != pending().id) {
    fail("Var: '", state.storage->name, "' was assigned in another thread: flush() there first");
  }
}

// A copy of the value in storage of its own.
std::shared_ptr<Storage> copy_of(const Tensor& value, const std::string& name) {
  value.eval();
  const auto slot = value_slot(value.value());
  DeviceContext& device = *slot->storage->device;
  const auto storage = make_storage(value.value().type(), device);
  storage->name = name;
  const int64_t bytes = byte_size(value.value().type());
  const HostSpan span(Profile::Kind::transfer, "copy", 2 * bytes);
  device.backend.copy(ref(storage->buffer), ref(read_slot(*slot)), bytes, {});
  return storage;
}

void check_not_tracing(const char* op, const std::string& name) {
  if (!pending().tracing) return;
  fail(op, ": '", name, "' cannot be changed while a function is being compiled: do it before");
}

}  // namespace

Var::Var(const Tensor& initial, std::string name, bool trainable)
    : state_(std::make_shared<VarState>()) {
  if (pending().tracing) {
    fail("Var: '", name, "' cannot be made while a function is being compiled: make it before");
  }
  state_->type = initial.value().type();
  state_->trainable = trainable && is_float(state_->type.dtype);
  state_->storage = copy_of(initial, name);
  state_->self = state_;
}

const std::string& Var::name() const { return checked(state_).storage->name; }
const Shape& Var::shape() const { return checked(state_).type.shape; }
DType Var::dtype() const { return checked(state_).type.dtype; }
bool Var::trainable() const { return checked(state_).trainable; }

Tensor Var::value() const {
  VarState& state = checked(state_);
  check_same_thread(state);
  return Tensor(state.pending ? state.pending : state.committed());
}

void Var::assign(const Tensor& value) const {
  VarState& state = checked(state_);
  if (value.value().type() != state.type) {
    fail("assign: expected ", state.type, " for '", name(), "', got ", value.value().type());
  }
  check_same_thread(state);
  Pending& p = pending();
  Value next = p.tracing ? value.value() : unless_stored(value.value());
  if (state.pending && !p.tracing) {
    // A loop that never reads must not grow without end: what was assigned before is written now,
    // the new value computed beside it, and its history forgotten.
    keep_readable(Tensor(next));
    flush();
    next = unless_stored(leaf_of(state.type, value_slot(next)->storage));
  }
  if (!state.pending) p.assigned.push_back(state_);
  state.pending = next;
  state.pending_in = p.id;
}

void Var::set_bytes(DType dtype, const void* data) const {
  VarState& state = checked(state_);
  if (dtype != state.type.dtype) {
    fail("set: expected ", state.type.dtype, " for '", name(), "', got ", dtype);
  }
  if (pending().tracing) {
    fail("set: '", name(), "' cannot be set while a function is being compiled: assign to it");
  }
  flush();
  const int64_t bytes = byte_size(state.type);
  const HostSpan span(Profile::Kind::transfer, "upload", bytes);
  state.storage->device->backend.upload(ref(state.storage->buffer), data, bytes, {});
  commit(std::span(&state_, 1));
}

void Var::set(const Scalar& value) const {
  const VarState& state = checked(state_);
  value.check_fits(state.type.dtype);
  visit(state.type.dtype, [&]<class T>() {
    const T element =
        value.is_integer() && std::is_integral_v<T> ? T(value.integer()) : T(value.real());
    const std::vector<uint8_t> bytes = [&] {
      const size_t n = size_t(tessera::numel(state.type.shape));
      std::vector<uint8_t> result(n * sizeof(T));
      for (size_t i = 0; i < n; ++i) std::memcpy(&result[i * sizeof(T)], &element, sizeof(T));
      return result;
    }();
    set_bytes(state.type.dtype, bytes.data());
  });
}

void Var::set_trainable(bool trainable) const {
  VarState& state = checked(state_);
  check_not_tracing("set_trainable", name());
  if (trainable && !is_float(state.type.dtype)) {
    fail("set_trainable: expected a floating-point Var, got ", state.type, " for '", name(), "'");
  }
  if (state.trainable == trainable) return;
  state.trainable = trainable;
  forget_traces();
}

void Var::replace(const Tensor& value) const {
  VarState& state = checked(state_);
  flush();
  const auto storage = copy_of(value, name());
  commit(std::span(&state_, 1));  // handles to the old value are stale
  state.storage = storage;
  state.type = value.value().type();
  state.trainable = state.trainable && is_float(state.type.dtype);
  state.leaf = state.grad = {};
  forget_traces();
}

void Var::convert(DType dtype) const {
  check_not_tracing("convert", name());
  if (dtype != this->dtype()) replace(value().to(dtype));
}

void Var::move(Device device) const {
  check_not_tracing("move", name());
  if (device != value().device()) replace(value().to(device));
}

Tensor Var::grad() const { return Tensor(checked(state_).writable_grad()); }

void Var::set_grad(const Tensor& grad) const {
  VarState& state = checked(state_);
  const Type wide = {compute_type(state.type.dtype), state.type.shape};
  if (grad.defined() && grad.value().type() != state.type && grad.value().type() != wide) {
    fail("set_grad: expected ", state.type, " for '", name(), "', got ", grad.value().type());
  }
  state.writable_grad() = grad.defined() ? grad.value() : Value{};
}

}  // namespace tessera
