// Runs lines: checks each, and times those that are right.
#pragma once

#include <functional>
#include <span>

#include "tessera/bench/case.h"
#include "tessera/bench/timing.h"

namespace tessera::bench {

// Where any contender is wrong, nobody is timed. Of several in one column the fastest stays.
Line run_case(const Case& one, const Setting& setting, const Policy& policy);

struct Observer {
  std::function<void(const Case& one, size_t number, size_t count)> starting;  // numbers from 1
  std::function<void(const Line& line)> finished;
};

// Adds to `results` the lines, and how many a quick run leaves out.
void run_cases(std::span<const Case> cases, const Setting& setting, const Observer& observer,
               Results& results);

}  // namespace tessera::bench
