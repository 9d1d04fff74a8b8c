#include "tessera/tensor/eval.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <list>
#include <mutex>
#include <unordered_map>
#include <unordered_set>

#include "tessera/base/precision.h"
#include "tessera/graph/rewrite.h"
#include "tessera/tensor/device.h"
#include "tessera/tensor/stats.h"
#include "tessera/tensor/var.h"

namespace tessera {

namespace {

std::atomic<int64_t> compilations{0}, replays{0};
std::atomic<uint64_t> steps{0};

Pending& plain_pending() {
  thread_local Pending instance;
  return instance;
}
thread_local Pending* t_pending = nullptr;
thread_local CompileOptions t_options;

// Programs of the plain style, by the structure of what they compute. Bounded: least recently used
// ones go first.
class ProgramCache {
 public:
  std::shared_ptr<Executor> get(const GraphFunction& function, DeviceContext& device) {
    const CompileOptions& o = compile_options();
    const HostSpan span(Profile::Kind::trace, "find program");
    std::string key = structure_key(function) + to_string(device.device);
    for (const bool bit : {o.simplify, o.match, o.rematerialize, o.order_outputs, o.recompute,
                           o.pad_rows, o.fuse, o.horizontal, o.kernel_ops, allows_tf32()}) {
      key.push_back(char('0' + bit));
    }
    const std::lock_guard lock(mutex_);
    if (const auto it = index_.find(key); it != index_.end()) {
      entries_.splice(entries_.begin(), entries_, it->second);
      detail::count_replay();
      return it->second->second;
    }
    auto executor = std::make_shared<Executor>(
        compile_profiled(function, device.backend.target(), o), device.exec);
    detail::count_compilation();
    entries_.emplace_front(key, executor);
    index_[std::move(key)] = entries_.begin();
    if (entries_.size() > kCapacity) {
      index_.erase(entries_.back().first);
      entries_.pop_back();
    }
    return executor;
  }

 private:
  static constexpr size_t kCapacity = 256;
  using Entry = std::pair<std::string, std::shared_ptr<Executor>>;
  std::mutex mutex_;
  std::list<Entry> entries_;
  std::unordered_map<std::string, std::list<Entry>::iterator> index_;
};

ProgramCache& program_cache() {
  static auto* cache = new ProgramCache;
  return *cache;
}

// Forgets what is pending, also when the evaluation throws: a step that failed is dropped, it does
// not come back with the next read.
struct ClearPending {
  Pending& pending;
  ~ClearPending() {
    for (const auto& var : pending.assigned) var->pending = {};
    pending.assigned.clear();
    pending.kept.clear();
  }
};

// In a trace: what is computed from present values of Vars. It may be interned with nodes that were
// evaluated outside, whose values a replay must not use: it computes them from the Vars again.
std::unordered_set<const Node*> live_nodes_of(std::span<const Value> roots) {
  std::unordered_set<const Node*> live, gone;  // gone: built on a value that was replaced
  if (!pending().tracing) return live;
  for (const NodePtr& node : topological_order(roots)) {
    bool from_var = false, from_gone = false;
    for (const Value& input : node->inputs()) {
      const auto slot = input.node->op == Op::leaf ? value_slot(input) : nullptr;
      from_var |= live.contains(input.node.get()) || (slot && !slot->var.expired());
      from_gone |= gone.contains(input.node.get()) || (slot && slot->is_stale());
    }
    if (from_gone) gone.insert(node.get());
    if (from_var && !from_gone) live.insert(node.get());
  }
  return live;
}

}  // namespace

Pending::Pending()
    : id([] {
        static std::atomic<uint64_t> next{1};
        return next.fetch_add(1);
      }()) {}

MemoryStats memory_stats(Device device) {
  DeviceContext& context = device_context(device);
  const AllocatorStats values = context.allocator.stats();
  return {values.in_use, values.peak, values.cached, context.exec.arena_bytes(),
          context.backend.free_bytes()};
}

EvalStats eval_stats() { return {compilations.load(), replays.load()}; }
void detail::count_compilation() { ++compilations; }
void detail::count_replay() { ++replays; }

CompileOptions set_compile_options(const CompileOptions& options) {
  return std::exchange(t_options, options);
}

const CompileOptions& compile_options() {
  static const CompileOptions node_by_node = {
      .simplify = false, .match = false, .rematerialize = false, .fuse = false};
  return is_eager() ? node_by_node : t_options;
}

std::atomic<bool> detail::eager = [] {
  const char* asked = std::getenv("TESSERA_EAGER");
  return asked != nullptr && *asked != 0 && std::string_view(asked) != "0";
}();

Pending& pending() { return t_pending != nullptr ? *t_pending : plain_pending(); }

TraceGuard::TraceGuard(bool tracing) : outer_(t_pending) {
  own_.tracing = tracing;
  own_.isolated = true;
  t_pending = &own_;
}

TraceGuard::~TraceGuard() {
  for (const auto& var : own_.assigned) var->pending = {};
  for (auto it = own_.graded.rbegin(); it != own_.graded.rend(); ++it) it->first->grad = it->second;
  t_pending = outer_;
}

const Value& VarState::committed() {
  const auto slot = leaf ? value_slot(leaf) : nullptr;
  if (!slot || slot->is_stale()) leaf = leaf_of(type, storage, self);
  return leaf;
}

Value& VarState::writable_grad() {
  Pending& p = tessera::pending();
  if (p.isolated) {
    const bool known = std::any_of(p.graded.begin(), p.graded.end(),
                                   [this](const auto& entry) { return entry.first.get() == this; });
    if (!known) p.graded.emplace_back(self.lock(), std::exchange(grad, {}));
  }
  return grad;
}

Captured capture(std::span<const Value> inputs, std::span<const Value> outputs,
                 std::span<const std::shared_ptr<VarState>> assigned) {
  const HostSpan span(Profile::Kind::trace, "capture");
  Captured result;
  GraphFunction& f = result.function;
  f.externals.assign(inputs.begin(), inputs.end());
  f.outputs.assign(outputs.begin(), outputs.end());
  result.slots.resize(inputs.size());
  std::unordered_set<const Node*> is_input;
  for (const Value& input : inputs) is_input.insert(input.node.get());

  // One external per storage: a value that was assigned to a Var and the Var's own leaf are the
  // same memory, and the compiler must know it when a step writes there.
  std::unordered_map<const Storage*, int> by_storage;
  std::unordered_map<Value, Value> replaced;
  auto add_external = [&](const Value& value, const std::shared_ptr<ValueSlot>& slot) {
    read_slot(*slot);
    const auto [it, added] = by_storage.emplace(slot->storage.get(), int(f.externals.size()));
    if (added) {
      f.externals.push_back(value.node->op == Op::leaf ? value : make_leaf(value.type()));
      result.slots.push_back(slot);
    }
    const Value& leaf = f.externals[size_t(it->second)];
    if (leaf != value) replaced.emplace(value, leaf);
    return it->second;
  };

  std::vector<Value> roots = f.outputs;
  for (const auto& var : assigned) roots.push_back(var->pending);
  const std::unordered_set<const Node*> live = live_nodes_of(roots);
  auto is_evaluated = [&live](const Node& node) {
    if (live.contains(&node)) return false;
    for (size_t i = 0; i < node.types.size(); ++i) {
      if (!value_slot(node, int(i))) return false;
    }
    return true;
  };
  for (const NodePtr& node : topological_order(roots, is_evaluated)) {
    if (is_input.contains(node.get())) continue;
    if (node->op == Op::leaf && !value_slot(*node, 0)) {
      fail("a tensor has no value: it belongs to a function that was being compiled");
    }
    if (!is_evaluated(*node)) continue;
    for (size_t i = 0; i < node->types.size(); ++i) {
      add_external({node, int(i)}, value_slot(*node, int(i)));
    }
  }
  if (!replaced.empty()) {
    roots = substitute(roots, replaced);
    std::copy_n(roots.begin(), f.outputs.size(), f.outputs.begin());
  }
  for (size_t i = 0; i < assigned.size(); ++i) {
    const Value& leaf = assigned[i]->committed();
    f.assigns.push_back({add_external(leaf, value_slot(leaf)), roots[f.outputs.size() + i]});
  }
  return result;
}

void commit(std::span<const std::shared_ptr<VarState>> assigned) {
  if (assigned.empty()) return;
  const uint64_t step = ++steps;
  for (const auto& var : assigned) {
    var->storage->replaced_by.store(step);
    var->storage->version.fetch_add(1);
  }
}

namespace {

using VarStates = std::vector<std::shared_ptr<VarState>>;

// Runs what `wanted` and the assigned Vars of one device need, and puts the results into slots.
void compute(DeviceContext& device, const std::vector<Value>& wanted, const VarStates& assigned) {
  const Captured captured = capture({}, wanted, assigned);
  const std::shared_ptr<Executor> executor = program_cache().get(captured.function, device);
  std::vector<Buffer> externals, outputs;
  for (const auto& slot : captured.slots) externals.push_back(slot->storage->buffer);
  std::vector<std::shared_ptr<Storage>> results;
  for (const Value& value : wanted) {
    results.push_back(make_storage(value.type(), device));
    outputs.push_back(results.back()->buffer);
  }
  try {
    executor->run(externals, outputs);
  } catch (...) {
    commit(assigned);  // some may have been written: a handle to the old value is stale
    throw;
  }
  for (size_t i = 0; i < wanted.size(); ++i) {
    wanted[i].node->set_slot(wanted[i].out, std::make_shared<ValueSlot>(results[i]));
  }
  commit(assigned);
  // What was built on an assigned value but not computed yet finds it in the Var's storage.
  for (const auto& var : assigned) {
    const Value& value = var->pending;
    if (!value_slot(value)) {
      value.node->set_slot(value.out, std::make_shared<ValueSlot>(var->storage));
    }
  }
}

// What one device has to compute and write.
struct Share {
  DeviceContext* device;
  std::vector<Value> wanted;
  VarStates assigned;
};

std::vector<Share> shares_of(const std::vector<Value>& wanted, const VarStates& assigned) {
  std::vector<Share> shares;
  auto share_of = [&shares](DeviceContext& device) -> Share& {
    for (Share& share : shares) {
      if (share.device == &device) return share;
    }
    return shares.emplace_back(Share{&device, {}, {}});
  };
  for (const Value& value : wanted) {
    share_of(device_of(std::span(&value, 1))).wanted.push_back(value);
  }
  for (const auto& var : assigned) {
    DeviceContext& device = device_of(std::vector<Value>{var->committed(), var->pending});
    share_of(device).assigned.push_back(var);
  }
  return shares;
}

}  // namespace

void evaluate(std::span<const Value> values) {
  Pending& p = pending();
  if (p.tracing) {
    fail("a value cannot be read while its function is being compiled: return it instead");
  }
  std::vector<Value> wanted;
  auto want = [&wanted](const Value& value) {
    if (const auto slot = value_slot(value)) {
      read_slot(*slot);
    } else if (std::find(wanted.begin(), wanted.end(), value) == wanted.end()) {
      wanted.push_back(value);
    }
  };
  for (const Value& value : values) want(value);
  for (const Value& value : p.kept) {
    if (!value_slot(value)) want(value);
  }
  if (wanted.empty() && p.assigned.empty()) {
    p.kept.clear();
    return;
  }
  const ClearPending clear{p};
  for (const Share& share : shares_of(wanted, p.assigned)) {
    compute(*share.device, share.wanted, share.assigned);
  }
}

void evaluate_alone(const Value& value) {
  if (value_slot(value)) return;
  compute(device_of(std::span(&value, 1)), {value}, {});
}

void prepare_kernels(std::span<const Value> values) {
  DeviceContext& device = device_of(values);
  std::vector<Program> programs;
  for (const Value& value : values) {
    if (value_slot(value)) continue;
    const Captured captured = capture({}, std::span(&value, 1), {});
    programs.push_back(
        compile_profiled(captured.function, device.backend.target(), compile_options()));
  }
  device.exec.kernels().prepare(device.backend, programs);
}

void keep_readable(const Tensor& value) {
  if (!pending().tracing) pending().kept.push_back(value.value());
}

void flush() {
  if (!pending().tracing) evaluate({});
}

}  // namespace tessera
