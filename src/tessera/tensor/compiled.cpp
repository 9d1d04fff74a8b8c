#include "tessera/tensor/compiled.h"

#include <atomic>
#include <list>

#include "tessera/base/log.h"
#include "tessera/tensor/device.h"
#include "tessera/tensor/eval.h"
#include "tessera/tensor/stats.h"
#include "tessera/tensor/var.h"

namespace tessera {

namespace {

constexpr size_t kCapacity = 32;          // Programs kept per function
constexpr int64_t kWarnCompilations = 8;  // the compilation that warns

thread_local bool t_training = true;
std::atomic<uint64_t> generation{0};  // of traces: raised by forget_traces()

// What a trace depends on.
struct Signature {
  std::vector<Type> inputs;
  DeviceContext* device = nullptr;  // of the inputs
  std::vector<int64_t> statics;
  bool training = true;
  uint64_t generation = 0;

  bool operator==(const Signature&) const = default;
};

std::string difference(const Signature& before, const Signature& now) {
  if (before.training != now.training) return "the mode";
  if (before.device != now.device) return "the device";
  if (before.statics != now.statics) return "a static argument";
  for (size_t i = 0; i < now.inputs.size() && i < before.inputs.size(); ++i) {
    if (before.inputs[i] != now.inputs[i]) {
      return cat("input ", i, ": ", before.inputs[i], " before, ", now.inputs[i], " now");
    }
  }
  return "the number of inputs";
}

// A Program with everything it is bound to.
struct Instance {
  Signature signature;
  DeviceContext* device = nullptr;
  std::unique_ptr<Executor> executor;
  std::vector<Buffer> externals;                  // input slots first
  std::vector<std::shared_ptr<ValueSlot>> bound;  // keeps captured storage alive
  std::vector<std::shared_ptr<VarState>> assigned;
  std::vector<Type> output_types;
  std::vector<std::shared_ptr<Storage>> outputs[2];  // by parity of the call
  int64_t calls = 0;
};

DeviceContext& common_device(std::span<const Tensor> inputs) {
  std::vector<Value> values;
  for (const Tensor& input : inputs) values.push_back(input.value());
  return device_of(values);
}

Signature signature_of(std::span<const Tensor> inputs, std::span<const int64_t> statics) {
  Signature signature;
  for (const Tensor& input : inputs) signature.inputs.push_back(input.value().type());
  if (!inputs.empty()) signature.device = &common_device(inputs);
  signature.statics.assign(statics.begin(), statics.end());
  signature.training = t_training;
  signature.generation = generation;
  return signature;
}

// Inputs are placeholders without data during a trace, so their device comes with the signature.
DeviceContext& device_of_trace(const Signature& signature, const Captured& captured) {
  DeviceContext* found = signature.device;
  for (const auto& slot : captured.slots) {
    if (slot) join_devices(found, slot->storage->device);
  }
  return found != nullptr ? *found : device_context(default_device());
}

// Calls the function as it stands. As when compiled, it is one step: Vars are written at its end,
// or not at all when it throws.
std::vector<Tensor> call_eagerly(const Compiled::Function& function, std::span<const Tensor> inputs,
                                 std::span<const int64_t> statics) {
  TraceGuard guard(false);
  std::vector<Tensor> outputs = function(inputs, statics);
  for (Tensor& output : outputs) {
    // The value of a Var, which the step replaces, is returned as a copy.
    if (output.value().node->op != Op::leaf) continue;
    Attrs attrs;
    attrs.a = output.shape();
    output = Tensor(Value{make_node(Op::reshape, {output.value()}, attrs), 0});
  }
  for (const Tensor& output : outputs) evaluate_alone(output.value());
  flush();
  return outputs;
}

}  // namespace

bool is_training() { return t_training; }
ModeGuard::ModeGuard(bool training) : previous_(std::exchange(t_training, training)) {}
ModeGuard::~ModeGuard() { t_training = previous_; }
void forget_traces() { ++generation; }

struct Compiled::State {
  Function function;
  std::list<Instance> instances;  // most recently used first
  CompiledStats stats;
  Profile* profile = nullptr;

  Instance& find(const Signature& signature);
  Instance trace(const Signature& signature);
  std::vector<Tensor> run(Instance& instance, std::span<const Tensor> inputs);
};

Compiled::Compiled(Function function) : state_(std::make_shared<State>()) {
  state_->function = std::move(function);
}

CompiledStats Compiled::stats() const { return state_->stats; }
void Compiled::set_profile(Profile* profile) const { state_->profile = profile; }

const Program& Compiled::program() const {
  if (state_->instances.empty()) fail("compile: the function has not been called yet");
  return state_->instances.front().executor->program();
}

std::vector<Tensor> Compiled::operator()(std::span<const Tensor> inputs,
                                         std::span<const int64_t> statics) const {
  // Inside another trace this is just a function.
  if (pending().tracing) return state_->function(inputs, statics);
  flush();
  eval(inputs);
  if (is_eager()) return call_eagerly(state_->function, inputs, statics);
  return state_->run(state_->find(signature_of(inputs, statics)), inputs);
}

void Compiled::prepare(std::span<const Tensor> inputs, std::span<const int64_t> statics) const {
  flush();
  eval(inputs);
  const EagerGuard compiled(false);
  state_->find(signature_of(inputs, statics));
}

Instance& Compiled::State::find(const Signature& signature) {
  instances.remove_if(
      [&](const Instance& i) { return i.signature.generation != signature.generation; });
  for (auto it = instances.begin(); it != instances.end(); ++it) {
    if (it->signature != signature) continue;
    ++stats.replays;
    detail::count_replay();
    instances.splice(instances.begin(), instances, it);
    return instances.front();
  }
  Instance instance = trace(signature);
  ++stats.compilations;
  detail::count_compilation();
  if (stats.compilations == kWarnCompilations) {
    log_warning("a function has been compiled ", stats.compilations, " times; this time for ",
                instances.empty() ? "a Var or a module that has changed"
                                  : difference(instances.front().signature, signature),
                ". What varies should be an input of fixed shape or a Var.");
  }
  instances.push_front(std::move(instance));
  if (instances.size() > kCapacity) instances.pop_back();
  return instances.front();
}

Instance Compiled::State::trace(const Signature& signature) {
  std::vector<Value> leaves;
  std::vector<Tensor> inputs;
  for (const Type& type : signature.inputs) {
    leaves.push_back(make_leaf(type));
    inputs.emplace_back(leaves.back());
  }
  Instance instance;
  instance.signature = signature;
  Captured captured;
  {
    const HostSpan span(Profile::Kind::trace, "function");
    TraceGuard guard;
    std::vector<Value> outputs;
    for (const Tensor& output : function(inputs, signature.statics)) {
      outputs.push_back(output.value());
    }
    instance.assigned = guard.pending().assigned;
    captured = capture(leaves, outputs, instance.assigned);
  }
  DeviceContext& device = device_of_trace(signature, captured);
  instance.device = &device;
  instance.executor = std::make_unique<Executor>(
      compile_profiled(captured.function, device.backend.target(), compile_options()), device.exec);
  for (size_t i = 0; i < captured.slots.size(); ++i) {
    const Type& type = captured.function.externals[i].type();
    const bool is_input = captured.slots[i] == nullptr;
    instance.externals.push_back(is_input ? make_storage(type, device)->buffer
                                          : captured.slots[i]->storage->buffer);
  }
  instance.bound = std::move(captured.slots);
  for (const Value& output : captured.function.outputs) {
    instance.output_types.push_back(output.type());
  }
  for (auto& set : instance.outputs) {
    for (const Type& type : instance.output_types) set.push_back(make_storage(type, device));
  }
  return instance;
}

std::vector<Tensor> Compiled::State::run(Instance& instance, std::span<const Tensor> inputs) {
  DeviceContext& device = *instance.device;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Buffer& from = read_slot(*value_slot(inputs[i].value()));
    const int64_t bytes = byte_size(instance.signature.inputs[i]);
    const HostSpan span(Profile::Kind::transfer, "copy inputs", 2 * bytes);
    device.backend.copy(ref(instance.externals[i]), ref(from), bytes, {});
  }
  auto& outputs = instance.outputs[instance.calls++ % 2];
  std::vector<Buffer> buffers;
  for (size_t i = 0; i < outputs.size(); ++i) {
    // Somebody still holds the result of the call before last: it keeps its buffer.
    if (outputs[i].use_count() > 1) outputs[i] = make_storage(instance.output_types[i], device);
    buffers.push_back(outputs[i]->buffer);
  }
  try {
    instance.executor->run(instance.externals, buffers, profile);
  } catch (...) {
    commit(instance.assigned);  // some may have been written: a handle to the old value is stale
    throw;
  }
  commit(instance.assigned);
  std::vector<Tensor> results;
  for (size_t i = 0; i < outputs.size(); ++i) {
    results.emplace_back(leaf_of(instance.output_types[i], outputs[i]));
  }
  return results;
}

}  // namespace tessera
