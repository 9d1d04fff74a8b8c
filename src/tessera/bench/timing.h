// The one way in which everything here is timed.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "tessera/bench/statistics.h"

namespace tessera::bench {

struct Policy {
  int least_samples = 30;
  int most_samples = 300;         // of short work
  double sample_seconds = 50e-6;  // shorter runs are timed several at a time
  double total_seconds = 0.1;     // of short work: more samples than the least, up to this
  int rounds = 5;                 // in which the samples are taken
  // Of short work before each round: threads that slept may wake on one core, and take some
  // milliseconds to part.
  double warm_seconds = 20e-3;
  // As sample_seconds, of work that is queued on a device: waiting for it once takes a GPU's driver
  // some microseconds, which must not show.
  double queued_seconds = 2e-3;
  // Of runs that take long: fewer samples than the least, down to a few, so as to stay below this;
  // 0: no such limit.
  double most_seconds = 0;
};

Policy full_policy();
Policy quick_policy();  // a few samples, which can tell a factor but no percentage

struct Work {
  std::function<void()> run;
  // Idle time behind each block of samples: threads of other libraries go on spinning for a while,
  // and would slow down whoever comes next.
  double settle_seconds = 0;
  // Where run() only queues work on a device: waits for all that was queued. Part of a sample, once
  // behind all of its runs.
  std::function<void()> wait = nullptr;
};

// Warms each up, then times them in turns, a block of samples each, so that a change of the
// machine's speed meets them all.
std::vector<Summary> measure(std::span<const Work> works, const Policy& policy);

// Seconds of one call.
double seconds_of(const std::function<void()>& run);

// The least of `times` calls, after one that does not count.
double best_of(int times, const std::function<void()>& run);

}  // namespace tessera::bench
