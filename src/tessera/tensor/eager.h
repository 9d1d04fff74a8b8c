// Eager mode, for finding mistakes: every operation is computed when its line runs, by kernels of
// one node each, and compile(fn) just calls fn. Errors of data then come from the line that made
// them, and a debugger sees every value. Slow; results differ from compiled ones by rounding at
// most.
//
// TESSERA_EAGER=1 in the environment turns it on for the process.
#pragma once

#include <atomic>

namespace tessera {

namespace detail {
extern std::atomic<bool> eager;
}

inline bool is_eager() { return detail::eager.load(std::memory_order_relaxed); }

// Sets the mode for a while.
class EagerGuard {
 public:
  explicit EagerGuard(bool eager) : previous_(detail::eager.exchange(eager)) {}
  ~EagerGuard() { detail::eager = previous_; }
  EagerGuard(const EagerGuard&) = delete;
  EagerGuard& operator=(const EagerGuard&) = delete;

 private:
  bool previous_;
};

}  // namespace tessera
