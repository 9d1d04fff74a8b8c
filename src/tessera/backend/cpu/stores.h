// Whether a kernel's results go past the caches, where both ways give the same bits.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>

namespace tessera::cpu {

// What no cache holds goes past them, and what is much smaller does not. Between, it depends on who
// else uses the last cache just then: both ways are timed, and results go past where that is
// clearly faster. Thread safe.
class Stores {
 public:
  // `bytes`: all that a run reads and writes.
  explicit Stores(int64_t bytes);

  // Calls run(past).
  template <class Run>
  void run(Run run) {
    using Clock = std::chrono::steady_clock;
    const bool past = next();
    const auto start = Clock::now();
    run(past);
    took(past, std::chrono::duration<float>(Clock::now() - start).count());
  }

  // The way of the next run, and how long it took.
  bool next();
  void took(bool past, float seconds);

 private:
  bool may_stay_, may_go_;
  std::atomic<uint32_t> runs_{0};
  std::atomic<float> seconds_[2] = {std::numeric_limits<float>::infinity(),
                                    std::numeric_limits<float>::infinity()};
};

}  // namespace tessera::cpu
