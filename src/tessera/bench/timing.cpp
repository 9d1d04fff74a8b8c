#include "tessera/bench/timing.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

#include "tessera/base/thread_pool.h"

namespace tessera::bench {

namespace {

constexpr int kTrials = 4;
constexpr int64_t kFewSamples = 5;
constexpr double kLongRun = 5e-3;  // needs no extra run to fill the caches with its own data

double seconds_of_batch(const Work& work, int64_t batch) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  for (int64_t i = 0; i < batch; ++i) work.run();
  if (work.wait) work.wait();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void pause(double seconds) {
  if (seconds > 0) std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

// Threads that slept may wake on one core, and stay there: whoever begins short work has done it
// before the others run.
void part_threads(double seconds) {
  using Clock = std::chrono::steady_clock;
  ThreadPool& pool = thread_pool();
  pool.parallel_for(1 + pool.workers(), 1, [&](int64_t begin, int64_t end) {
    const auto until = Clock::now() + (end - begin) * std::chrono::duration<double>(seconds);
    while (Clock::now() < until) {
    }
  });
}

// One contestant: how its samples are taken, and those taken so far.
struct Series {
  const Work* work;
  int64_t batch = 1, wanted = 0;
  bool is_long = false;
  std::vector<double> samples = {};

  void prepare(const Policy& policy) {
    seconds_of_batch(*work, 1);
    const double enough = work->wait ? policy.queued_seconds : policy.sample_seconds;
    double seconds = least_seconds(enough);
    while (seconds < enough) {
      batch *= 2;
      seconds = least_seconds(enough);
    }
    is_long = seconds > kLongRun;
    const double affordable = policy.total_seconds / seconds;
    wanted =
        int64_t(std::clamp(affordable, double(policy.least_samples), double(policy.most_samples)));
    if (policy.most_seconds > 0) {
      wanted = std::min(wanted, std::max(kFewSamples, int64_t(policy.most_seconds / seconds)));
    }
    pause(work->settle_seconds);
  }

  // Of a sample. A short one is tried again: an interruption would make it look long enough.
  double least_seconds(double enough) const {
    double least = seconds_of_batch(*work, batch);
    for (int i = 0; i < kTrials && least < kTrials * enough; ++i) {
      least = std::min(least, seconds_of_batch(*work, batch));
    }
    return least;
  }

  void take(int64_t count, double warm_seconds) {
    if (!work->wait) part_threads(warm_seconds);
    for (double spent = 0; !is_long && spent <= warm_seconds;) {
      spent += seconds_of_batch(*work, batch);
    }
    for (int64_t i = 0; i < count; ++i) {
      samples.push_back(seconds_of_batch(*work, batch) / double(batch));
    }
    pause(work->settle_seconds);
  }
};

}  // namespace

Policy full_policy() { return {}; }
Policy quick_policy() { return {3, 9, 50e-6, 0.01, 1, 1e-3}; }

std::vector<Summary> measure(std::span<const Work> works, const Policy& policy) {
  std::vector<Series> all;
  for (const Work& work : works) {
    all.push_back({&work});
    all.back().prepare(policy);
  }
  for (int round = 0; round < policy.rounds; ++round) {
    for (Series& series : all) {
      series.take((series.wanted + policy.rounds - 1) / policy.rounds, policy.warm_seconds);
    }
  }
  std::vector<Summary> result;
  for (Series& series : all) result.push_back(summarize(std::move(series.samples), series.batch));
  return result;
}

double seconds_of(const std::function<void()>& run) { return seconds_of_batch({run}, 1); }

double best_of(int times, const std::function<void()>& run) {
  run();
  double best = seconds_of(run);
  for (int i = 1; i < times; ++i) best = std::min(best, seconds_of(run));
  return best;
}

}  // namespace tessera::bench
