#include "tessera/base/thread_pool.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <limits>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "support/expect_error.h"
#include "tessera/base/log.h"

namespace tessera {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#elif defined(__has_feature)
constexpr bool kSanitized = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
constexpr bool kSanitized = false;
#endif

using Ranges = std::set<std::pair<int64_t, int64_t>>;

Ranges parts_of(ThreadPool& pool, int64_t n, int64_t grain) {
  std::mutex mutex;
  Ranges ranges;
  pool.parallel_for(n, grain, [&](int64_t begin, int64_t end) {
    const std::lock_guard lock(mutex);
    EXPECT_TRUE(ranges.emplace(begin, end).second);
  });
  return ranges;
}

class ThreadPoolTest : public testing::TestWithParam<int> {};

TEST_P(ThreadPoolTest, PartsCoverTheRangeInWholeGrains) {
  ThreadPool pool(GetParam());
  EXPECT_EQ(pool.workers(), GetParam());
  for (const int64_t n : {1, 2, 7, 64, 1000, 1023, 1025, 5000, 100003}) {
    for (const int64_t grain : {1, 3, 64, 1000, 200000}) {
      int64_t covered = 0;
      for (const auto& [begin, end] : parts_of(pool, n, grain)) {
        ASSERT_EQ(begin, covered) << n << " " << grain;
        ASSERT_LT(begin, end);
        ASSERT_TRUE(end == n || (end - begin) % grain == 0) << n << " " << grain;
        covered = end;
      }
      ASSERT_EQ(covered, n) << n << " " << grain;
    }
  }
}

TEST_P(ThreadPoolTest, PartsDoNotDependOnTheNumberOfThreads) {
  ThreadPool alone(0), pool(GetParam());
  for (const int64_t n : {5, 1000, 4097, 1000003}) {
    for (const int64_t grain : {1, 16, 999}) {
      const Ranges expected = parts_of(alone, n, grain);
      EXPECT_EQ(parts_of(pool, n, grain), expected);
      pool.parallel_for(1, 1, [&](int64_t, int64_t) {
        EXPECT_EQ(parts_of(pool, n, grain), expected) << "nested";
      });
    }
  }
}

TEST_P(ThreadPoolTest, HugeRangesDoNotOverflow) {
  ThreadPool pool(GetParam());
  const int64_t n = std::numeric_limits<int64_t>::max();
  for (const int64_t grain : {int64_t(1), int64_t(12345), n / 2 + 1, n - 1, n}) {
    int64_t covered = 0;
    for (const auto& [begin, end] : parts_of(pool, n, grain)) {
      ASSERT_EQ(begin, covered) << grain;
      ASSERT_LT(begin, end) << grain;
      covered = end;
    }
    ASSERT_EQ(covered, n) << grain;
  }
}

TEST_P(ThreadPoolTest, NothingToDo) {
  ThreadPool pool(GetParam());
  pool.parallel_for(0, 1, [](int64_t, int64_t) { FAIL(); });
}

TEST_P(ThreadPoolTest, WritesAreVisibleAfterwards) {
  ThreadPool pool(GetParam());
  std::vector<int> values(10000);
  for (int round = 1; round <= 200; ++round) {
    pool.parallel_for(10000, 100, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) ++values[size_t(i)];
    });
    ASSERT_EQ(std::count(values.begin(), values.end(), round), 10000);
  }
}

TEST_P(ThreadPoolTest, RethrowsAndStaysUsable) {
  ThreadPool pool(GetParam());
  for (int round = 0; round < 50; ++round) {
    EXPECT_EQ(error_text([&] {
                pool.parallel_for(1000, 1, [](int64_t begin, int64_t) {
                  if (begin == 500) fail("part ", begin);
                });
              }),
              "part 500");
    EXPECT_EQ(parts_of(pool, 100, 1).size(), 100u);
  }
}

TEST_P(ThreadPoolTest, OneOfManyExceptionsArrivesAndTheRestIsSkipped) {
  ThreadPool pool(GetParam());
  std::atomic<int> calls{0};
  const auto body = [&](int64_t, int64_t) {
    ++calls;
    throw std::out_of_range("each part throws");
  };
  EXPECT_THROW(pool.parallel_for(1000, 1, body), std::out_of_range);
  EXPECT_LE(calls, 1 + GetParam());
}

TEST_P(ThreadPoolTest, NestedCallsRunInTheirThread) {
  ThreadPool pool(GetParam());
  std::atomic<int64_t> total{0};
  pool.parallel_for(16, 1, [&](int64_t, int64_t) {
    const auto self = std::this_thread::get_id();
    pool.parallel_for(100, 1, [&](int64_t begin, int64_t end) {
      EXPECT_EQ(std::this_thread::get_id(), self);
      total += end - begin;
    });
  });
  EXPECT_EQ(total, 1600);
}

TEST_P(ThreadPoolTest, AnExceptionOfANestedCallArrives) {
  ThreadPool pool(GetParam());
  const auto inner = [](int64_t begin, int64_t) {
    if (begin == 3) fail("inner");
  };
  const auto outer = [&](int64_t, int64_t) { pool.parallel_for(8, 1, inner); };
  EXPECT_EQ(error_text([&] { pool.parallel_for(4, 1, outer); }), "inner");
  EXPECT_EQ(error_text([&] { pool.parallel_for(1, 1, outer); }), "inner");
}

TEST_P(ThreadPoolTest, ManyCallersAtOnce) {
  ThreadPool pool(GetParam());
  std::vector<std::thread> callers;
  std::atomic<int> wrong{0};
  for (int caller = 0; caller < 8; ++caller) {
    callers.emplace_back([&pool, &wrong, caller] {
      for (int round = 0; round < 200; ++round) {
        std::atomic<int64_t> sum{0};
        const int64_t n = 100 + caller;
        pool.parallel_for(n, 1, [&](int64_t begin, int64_t) { sum += begin; });
        if (sum != n * (n - 1) / 2) ++wrong;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0);
}

INSTANTIATE_TEST_SUITE_P(Workers, ThreadPoolTest, testing::Values(0, 1, 3, 8));

// Runs `count` parts that each wait for all others: true only if as many threads take part.
bool all_meet(ThreadPool& pool, int count) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  std::atomic<int> arrived{0};
  std::atomic<bool> met{true};
  pool.parallel_for(count, 1, [&](int64_t, int64_t) {
    ++arrived;
    while (arrived < count && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::yield();
    }
    if (arrived < count) met = false;
  });
  return met;
}

TEST(ThreadPool, WorkersTakePart) {
  ThreadPool pool(1);
  EXPECT_TRUE(all_meet(pool, 2));
}

TEST(ThreadPool, SleepingWorkersWakeUp) {
  ThreadPool pool(3);
  for (int round = 0; round < 20; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // longer than any spinning
    ASSERT_TRUE(all_meet(pool, 4)) << round;
    ASSERT_TRUE(all_meet(pool, 2)) << round;
  }
}

// One part runs in the caller and leaves the pool idle, yet a call inside it stays in its thread.
TEST(ThreadPool, NestedInASinglePartRunsInItsThread) {
  ThreadPool pool(3);
  const auto self = std::this_thread::get_id();
  std::atomic<int> elsewhere{0};
  pool.parallel_for(1, 1, [&](int64_t, int64_t) {
    pool.parallel_for(20, 1, [&](int64_t, int64_t) {
      // Long enough for a sleeping worker to come and take a part.
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      if (std::this_thread::get_id() != self) ++elsewhere;
    });
  });
  EXPECT_EQ(elsewhere, 0);
  EXPECT_TRUE(all_meet(pool, 2)) << "the flag of being inside must not outlive the call";
}

TEST(ThreadPool, StartsAndStopsQuickly) {
  for (int round = 0; round < 200; ++round) {
    ThreadPool pool(round % 5);
    if (round % 2 == 0) continue;
    EXPECT_EQ(parts_of(pool, 8, 1).size(), 8u);
  }
}

// The process-wide pool is made once, so each setting needs a process of its own.
class ThreadPoolDeathTest : public testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }

  // Exits with the number of threads, or with 0 and the error's text on stderr.
  [[noreturn]] static void report_threads(const char* setting) {
    if (setting != nullptr) ::setenv("TESSERA_THREADS", setting, 1);
    if (setting == nullptr) ::unsetenv("TESSERA_THREADS");
    int threads = 0;
    try {
      threads = thread_pool().workers() + 1;
    } catch (const Error& e) {
      std::fputs(e.what(), stderr);
    }
    std::exit(threads);
  }
};

TEST_F(ThreadPoolDeathTest, VariableSetsTheNumberOfThreads) {
  EXPECT_EXIT(report_threads("1"), testing::ExitedWithCode(1), "");
  EXPECT_EXIT(report_threads("5"), testing::ExitedWithCode(5), "");
}

TEST_F(ThreadPoolDeathTest, OtherwiseOnePerUsableCore) {
  cpu_set_t set;
  ASSERT_EQ(::sched_getaffinity(0, sizeof(set), &set), 0);
  EXPECT_EXIT(report_threads(nullptr), testing::ExitedWithCode(CPU_COUNT(&set) & 0xff), "");
  const auto pinned = [] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(::sched_getcpu(), &one);
    if (::sched_setaffinity(0, sizeof(one), &one) != 0) std::exit(99);
    report_threads(nullptr);
  };
  EXPECT_EXIT(pinned(), testing::ExitedWithCode(1), "");
}

TEST_F(ThreadPoolDeathTest, InvalidSettingsAreRefused) {
  for (const char* bad : {"0", "-1", "1025", "", "two", "4x", " 4", "99999999999999999999"}) {
    const std::string text =
        cat("^TESSERA_THREADS: expected a number from 1 to 1024, got '", bad, "'$");
    EXPECT_EXIT(report_threads(bad), testing::ExitedWithCode(0), text) << bad;
  }
}

TEST_F(ThreadPoolDeathTest, GoesOnWithFewerThreadsThanAsked) {
  if (kSanitized) GTEST_SKIP() << "sanitizers reserve more address space than the limit leaves";
#if defined(TESSERA_EMULATED)
  GTEST_SKIP() << "qemu ignores limits of the address space";
#endif
  const auto starved = [] {
    set_log_sink([](LogLevel, std::string_view text) { std::cerr << text; });
    long pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const auto bytes = rlim_t(pages * ::sysconf(_SC_PAGESIZE)) + (rlim_t(64) << 20);
    const rlimit limit = {bytes, bytes};
    if (::setrlimit(RLIMIT_AS, &limit) != 0) std::exit(2);
    ThreadPool pool(512);
    const bool fewer = pool.workers() < 512;
    std::atomic<int> calls{0};
    pool.parallel_for(10, 1, [&](int64_t, int64_t) { ++calls; });
    std::exit(fewer && calls == 10 ? 0 : 1);
  };
  EXPECT_EXIT(starved(), testing::ExitedWithCode(0),
              "^thread pool: expected 512 workers, got [0-9]+: Resource temporarily unavailable");
}

}  // namespace
}  // namespace tessera
