#include "tessera/bench/timing.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

namespace tessera::bench {
namespace {

void wait(double seconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (std::chrono::steady_clock::now() < end) {
  }
}

TEST(Timing, TakesAtLeastThirtySamples) {
  const Work work{[] { wait(2e-4); }};
  const Summary summary = measure({&work, 1}, full_policy())[0];
  EXPECT_GE(summary.samples, 30);
  EXPECT_EQ(summary.batch, 1);
  EXPECT_GE(summary.least, 2e-4);
  EXPECT_GE(summary.median, summary.least);
}

TEST(Timing, ShortWorkIsTimedInBatches) {
  int64_t runs = 0;
  const Work work{[&] { ++runs; }};
  const Policy policy = full_policy();
  const Summary summary = measure({&work, 1}, policy)[0];
  EXPECT_GT(summary.batch, 100);
  EXPECT_GE(runs, summary.batch * summary.samples);
  EXPECT_LT(summary.median, policy.sample_seconds);
}

TEST(Timing, WorksTakeTurns) {
  std::string order;
  std::vector<Work> works;
  for (const char name : {'a', 'b'}) {
    works.push_back({[&order, name] {
      if (order.empty() || order.back() != name) order += name;
      wait(1e-4);
    }});
  }
  Policy policy;
  policy.least_samples = policy.most_samples = 6;
  policy.rounds = 3;
  const std::vector<Summary> summaries = measure(works, policy);
  EXPECT_EQ(order, "abababab") << "once to prepare, then three rounds";
  for (const Summary& summary : summaries) EXPECT_EQ(summary.samples, 6);
}

// Never a wait per run: a device's queue is what is timed.
TEST(Timing, QueuedWorkIsWaitedForOnceASample) {
  int64_t queued = 0, runs = 0, waits = 0;
  const Work work{[&] { ++queued, ++runs; }, 0,
                  [&] {
                    wait(1e-5 * double(queued));
                    queued = 0;
                    ++waits;
                  }};
  const Policy policy = quick_policy();
  const Summary summary = measure({&work, 1}, policy)[0];
  EXPECT_EQ(queued, 0);
  EXPECT_GE(double(summary.batch) * summary.median, policy.queued_seconds);
  EXPECT_GE(runs, summary.batch * summary.samples);
  EXPECT_LT(waits, runs / 8);
  EXPECT_GE(summary.median, 1e-5);
}

TEST(Timing, QuickIsFewerSamples) {
  const Work work{[] { wait(1e-4); }};
  EXPECT_LT(measure({&work, 1}, quick_policy())[0].samples, 30);
}

TEST(Timing, LongWorkIsSampledLess) {
  const Work work{[] { wait(0.02); }};
  Policy policy;
  policy.most_seconds = 0.16;
  EXPECT_GE(measure({&work, 1}, policy)[0].samples, 5);
  EXPECT_LE(measure({&work, 1}, policy)[0].samples, 10);
  policy.most_seconds = 0.02;
  EXPECT_EQ(measure({&work, 1}, policy)[0].samples, 5) << "a few all the same";
  policy.least_samples = policy.most_samples = 2;
  policy.rounds = 1;
  EXPECT_EQ(measure({&work, 1}, policy)[0].samples, 2) << "no more than without the limit";
}

TEST(Timing, PausesWhereThreadsOfOthersSpin) {
  const std::vector<Work> works = {{[] { wait(1e-4); }, 0.02}};
  Policy policy;
  policy.least_samples = policy.most_samples = 1;
  policy.rounds = 1;
  EXPECT_GE(seconds_of([&] { measure(works, policy); }), 0.04);
}

TEST(Timing, BestOfSeveral) {
  int calls = 0;
  const double best = best_of(3, [&] { wait(++calls == 3 ? 1e-4 : 0.05); });
  EXPECT_EQ(calls, 4) << "one does not count";
  EXPECT_LT(best, 0.05);
}

}  // namespace
}  // namespace tessera::bench
