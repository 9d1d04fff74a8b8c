// What the backends of this process have done so far. Tests assert on differences.
#pragma once

#include <atomic>
#include <cstdint>

namespace tessera {

struct CounterValues {
  int64_t allocations = 0;       // calls of Backend::allocate that succeeded
  int64_t bytes_in_use = 0;      // allocated and not released
  int64_t peak_bytes = 0;        // the greatest bytes_in_use so far
  int64_t compiles = 0;          // kernels prepared
  int64_t launches = 0;          // kernels run, or recorded programs
  int64_t synchronizations = 0;  // times the host waited for a device's queue
};

// Process-wide and thread safe. A backend adds to these; everybody else reads snapshot().
struct Counters {
  std::atomic<int64_t> allocations{0}, bytes_in_use{0}, peak_bytes{0}, compiles{0}, launches{0},
      synchronizations{0};

  void add_allocation(int64_t bytes);
  void add_release(int64_t bytes);
  CounterValues snapshot() const;
};

Counters& counters();

}  // namespace tessera
