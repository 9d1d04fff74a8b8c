// Results as one HTML file with charts: no scripts, no other files, no network.
#pragma once

#include <string>

#include "tessera/bench/results.h"

namespace tessera::bench {

std::string to_html(const Results& results);

}  // namespace tessera::bench
