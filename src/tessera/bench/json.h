// Results as one JSON document; docs/benchmarking.md describes it.
#pragma once

#include <string>

#include "tessera/bench/results.h"

namespace tessera::bench {

inline constexpr int kJsonFormat = 1;

// With a newline behind. What is not finite becomes null.
std::string to_json(const Results& results);

}  // namespace tessera::bench
