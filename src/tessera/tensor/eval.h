// Evaluation behind the public API: what is pending, and how values are computed and cached.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "tessera/compile/compile.h"
#include "tessera/graph/node.h"
#include "tessera/tensor/storage.h"

namespace tessera {

struct VarState {
  Type type;
  bool trainable = true;
  std::shared_ptr<Storage> storage;
  std::weak_ptr<VarState> self;
  Value leaf;               // of the committed version; remade when that version is replaced
  Value pending;            // assigned, not yet written
  uint64_t pending_in = 0;  // Pending::id of the thread or trace that assigned it
  Value grad;

  // The committed value as a leaf.
  const Value& committed();

  // The gradient, for writing. A trace starts without any and leaves what was there as it found it.
  Value& writable_grad();
};

// What the current thread has assigned but not written, and the values that must be computed with
// the next flush, because afterwards the parameters they need are gone.
struct Pending {
  const uint64_t id;  // never used twice
  bool tracing = false;
  bool isolated = false;  // of one call of a compiled function: gradients begin and end with it
  std::vector<std::shared_ptr<VarState>> assigned;
  std::vector<std::pair<std::shared_ptr<VarState>, Value>> graded;  // with the gradient before
  std::vector<Value> kept;

  Pending();
};
Pending& pending();

// Swaps in an empty Pending for the time of a trace, or of a call in eager mode. What is still
// pending at the end is dropped.
class TraceGuard {
 public:
  explicit TraceGuard(bool tracing = true);
  ~TraceGuard();
  TraceGuard(const TraceGuard&) = delete;
  TraceGuard& operator=(const TraceGuard&) = delete;
  Pending& pending() { return own_; }

 private:
  Pending own_;
  Pending* outer_;
};

// Computes these values and everything pending. Throws inside a trace.
void evaluate(std::span<const Value> values);

// Computes this value and writes no Var: for eager mode, where a step is still being built.
void evaluate_alone(const Value& value);

// Compiles the kernels that computing each of these values alone will need, all of them in one go,
// and computes nothing. REQUIRES: they are on one device.
void prepare_kernels(std::span<const Value> values);

// What a function reads: its graph with every evaluated value turned into a leaf, and the slot
// behind each leaf (null: one of `inputs`). Throws when a leaf has no value.
struct Captured {
  GraphFunction function;
  std::vector<std::shared_ptr<ValueSlot>> slots;  // one per external
};
Captured capture(std::span<const Value> inputs, std::span<const Value> outputs,
                 std::span<const std::shared_ptr<VarState>> assigned);

// The storage of an assigned Var holds a new version, written by a new step.
void commit(std::span<const std::shared_ptr<VarState>> assigned);

// Options of every compilation of this thread from now on; returns those before.
CompileOptions set_compile_options(const CompileOptions& options);
const CompileOptions& compile_options();

}  // namespace tessera
