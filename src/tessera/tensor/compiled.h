// compile(fn): traces a function of tensors once per shapes, dtypes, static arguments and mode, and
// replays the compiled Program afterwards, without rebuilding the graph.
//
//   auto step = compile([&](const Tensor& x, const Tensor& y) {
//     Tensor loss = cross_entropy(model(x), y);
//     backward(loss);
//     optimizer.step();
//     return loss;
//   });
//   for (…) Tensor loss = step(x, y);
//
// Vars read or assigned inside are bound, also through a value() taken before or an expression of
// one that was evaluated already (detach() freezes it); their storage is written in place. Other
// tensors the function captures are bound as they are at the time of tracing. Whatever varies must
// be an input or a Var: a number computed by the host inside the function is part of its structure.
//
// A call that throws on bad data (an index out of range) has taken no step. What can throw runs
// before Vars are written, unless it needs their new values: then some may have been written. One
// compiled function must not be called from two threads at once.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

#include "tessera/compile/compile.h"
#include "tessera/exec/executor.h"
#include "tessera/tensor/tensor.h"

namespace tessera {

struct CompiledStats {
  int64_t compilations = 0;
  int64_t replays = 0;  // calls that found their Program
};

class Compiled {
 public:
  using Function = std::function<std::vector<Tensor>(std::span<const Tensor> inputs,
                                                     std::span<const int64_t> statics)>;

  explicit Compiled(Function function);

  // Inputs are copied into the Program's own slots. Results stay valid for as long as they are
  // held: the Program alternates between two sets of output buffers and leaves one alone that is in
  // use.
  std::vector<Tensor> operator()(std::span<const Tensor> inputs,
                                 std::span<const int64_t> statics = {}) const;

  // Traces and plans for such inputs without running anything: program() then tells what a call
  // would take. The call finds it made.
  void prepare(std::span<const Tensor> inputs, std::span<const int64_t> statics = {}) const;

  CompiledStats stats() const;

  // Of the last call or prepare(). REQUIRES one.
  const Program& program() const;

  // From now on the time of each kernel is added to `profile`; null ends it.
  void set_profile(Profile* profile) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// Training or evaluation: dropout and the like look at it, and it is part of what compile() keys
// on.
bool is_training();

class ModeGuard {
 public:
  explicit ModeGuard(bool training);
  ~ModeGuard();
  ModeGuard(const ModeGuard&) = delete;
  ModeGuard& operator=(const ModeGuard&) = delete;

 private:
  bool previous_;
};

// Has every compiled function trace anew at its next call, and forget the Programs it has: the host
// has changed something that a trace looks at. Changes of Vars themselves see to it.
void forget_traces();

// The typed front of Compiled for a function of tensors that returns one tensor or several.
template <class R, class... Inputs>
class CompiledFunction {
 public:
  explicit CompiledFunction(std::function<R(Inputs...)> fn)
      : compiled_([fn = std::move(fn)](std::span<const Tensor> inputs, std::span<const int64_t>) {
          return call(fn, inputs, std::index_sequence_for<Inputs...>());
        }) {}

  R operator()(const std::remove_cvref_t<Inputs>&... inputs) const {
    const std::array<Tensor, sizeof...(Inputs)> list = {inputs...};
    std::vector<Tensor> outputs = compiled_(list);
    if constexpr (std::is_same_v<R, Tensor>) {
      return outputs[0];
    } else if constexpr (!std::is_void_v<R>) {
      return outputs;
    }
  }

  void prepare(const std::remove_cvref_t<Inputs>&... inputs) const {
    const std::array<Tensor, sizeof...(Inputs)> list = {inputs...};
    compiled_.prepare(list);
  }

  CompiledStats stats() const { return compiled_.stats(); }
  const Program& program() const { return compiled_.program(); }
  void set_profile(Profile* profile) const { compiled_.set_profile(profile); }

 private:
  static_assert((std::is_same_v<std::remove_cvref_t<Inputs>, Tensor> && ...),
                "compile: the function must take tensors");
  static_assert(std::is_void_v<R> || std::is_same_v<R, Tensor> ||
                    std::is_same_v<R, std::vector<Tensor>>,
                "compile: the function must return a Tensor, a std::vector<Tensor> or nothing");

  template <size_t... I>
  static std::vector<Tensor> call(const std::function<R(Inputs...)>& fn,
                                  std::span<const Tensor> inputs, std::index_sequence<I...>) {
    if constexpr (std::is_void_v<R>) {
      fn(inputs[I]...);
      return {};
    } else if constexpr (std::is_same_v<R, Tensor>) {
      return {fn(inputs[I]...)};
    } else {
      return fn(inputs[I]...);
    }
  }

  Compiled compiled_;
};

template <class R, class... Inputs>
CompiledFunction<R, Inputs...> compile_function(std::function<R(Inputs...)> fn) {
  return CompiledFunction<R, Inputs...>(std::move(fn));
}

template <class F>
auto compile(F fn) {
  return compile_function(std::function(std::move(fn)));
}

}  // namespace tessera
