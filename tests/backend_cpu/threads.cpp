#include "backend_cpu/threads.h"

#include <cstdlib>

#include "tessera/base/thread_pool.h"

namespace tessera::test {

namespace {

// Before the pool is made: several threads, also where the machine has one core.
const bool kFourThreads = setenv("TESSERA_THREADS", "4", 0) == 0;

}  // namespace

void run_alone(const std::function<void()>& work) {
  // Calls from inside a part do not spread out again.
  thread_pool().parallel_for(2, 1, [&](int64_t begin, int64_t) {
    if (begin == 0) work();
  });
}

}  // namespace tessera::test
