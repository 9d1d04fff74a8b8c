// "The claims of the field, measured": statements that projects like this one make, each judged by
// the numbers of one run.
#pragma once

#include "tessera/bench/results.h"

namespace tessera::bench {

// Every claim with its numbers and its verdict. Where a line it is about was not run, or is wrong,
// it is not measured; where it is about a GPU and there is none, it says so.
std::vector<Claim> judge_claims(const Results& results);

// Whether some claim is about this line.
bool is_claimed(std::string_view suite, std::string_view line);

}  // namespace tessera::bench
