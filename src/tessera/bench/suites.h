// The lines of the table, by suite. A new line is a row of one of these files.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "tessera/bench/case.h"

namespace tessera::bench {

std::vector<Case> matmul_cases();
std::vector<Case> elementwise_cases();
std::vector<Case> rows_cases();
std::vector<Case> attention_cases();  // of the suite "rows"
std::vector<Case> transfer_cases();
std::vector<Case> step_cases();
std::vector<Case> gpt_cases();  // of the suite "step"

struct Suite {
  std::string_view name, help;
};

// "claims" is the last: it has no lines of its own, but judges those of others.
std::span<const Suite> suites();

// Every line, in the order of the suites.
std::vector<Case> all_cases();

// Of `cases`, those of the suites asked for (none: all), and with "claims" also what its claims are
// about.
std::vector<Case> chosen_cases(std::vector<Case> cases, std::span<const std::string> asked);

}  // namespace tessera::bench
