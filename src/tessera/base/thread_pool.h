// A fixed pool that splits index ranges over threads.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace tessera {

class ThreadPool {
 public:
  // `workers` threads beside the caller's. 0 is valid: everything then runs in the caller.
  explicit ThreadPool(int workers);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int workers() const;

  // Calls body(begin, end) over disjoint parts that cover [0, n), each a whole number of grains but
  // the last. Returns when all are done. The caller takes part; a call from inside a body, or one
  // that finds the pool busy with another caller's work, runs in its own thread alone. The first
  // exception of a body is rethrown here. Which thread runs which part is not fixed: results must
  // not depend on it.
  void parallel_for(int64_t n, int64_t grain, const std::function<void(int64_t, int64_t)>& body);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The process-wide pool: TESSERA_THREADS threads in all (caller included), or one per core this
// process may run on.
ThreadPool& thread_pool();

}  // namespace tessera
