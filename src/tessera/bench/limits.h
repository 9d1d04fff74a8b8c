// What this machine can do at most, measured: shares are of these.
#pragma once

#include "tessera/bench/results.h"

namespace tessera::bench {

Limits measure_limits(bool quick);

Machine describe_machine();  // without compiler and version, which the command knows

}  // namespace tessera::bench
