// Random graph functions with data: every op, odd shapes, shared parts, regions, gradients and
// assigns. A seed gives the same program in every run.
#pragma once

#include "compile/disturbed.h"
#include "tessera/compile/program.h"

namespace tessera {

struct RandomProgram {
  GraphFunction function;
  std::vector<Array> data;  // of the externals
  // What rounding may change, per output, then per assign: the largest distance of any element
  // between the reference and runs of it with disturbed rounding.
  std::vector<double> spread;
};

RandomProgram random_program(uint64_t seed);

}  // namespace tessera
