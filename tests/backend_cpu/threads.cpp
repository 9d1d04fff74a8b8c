#include "backend_cpu/threads.h"

#include <gtest/gtest.h>
#include <unistd.h>

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

// The children learn of the digest by the environment: they run the test up to their own part.
void expect_equal_in_processes(const std::function<std::string()>& digest) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  constexpr const char* kVariable = "TESSERA_TEST_DIGEST";
  if (std::getenv(kVariable) == nullptr) setenv(kVariable, digest().c_str(), 1);
  for (const char* threads : {"1", "2", "7"}) {
    EXPECT_EXIT(
        {
          setenv("TESSERA_THREADS", threads, 1);
          _exit(digest() == std::getenv(kVariable) ? 0 : 1);
        },
        testing::ExitedWithCode(0), "")
        << threads;
  }
  unsetenv(kVariable);
}

}  // namespace tessera::test
