// Tessera as a contender: a compiled function of tensors, on each device.
#pragma once

#include <span>

#include "tessera/bench/case.h"
#include "tessera/compile/compile.h"
#include "tessera/tensor/autograd.h"

namespace tessera::bench {

struct TensorWork {
  std::vector<Tensor> inputs;  // evaluated; copied to each device
  TensorFunction function;
  CompileOptions options = {};
};

// `with_transfers`: each run sends the operands and fetches the results. Without them, and where
// the device is no CPU, runs are queued.
Contender make_contender(const TensorWork& work, Device device, bool with_transfers);

// One column per device. Of several works, which differ in their operands alone, each run takes the
// next. Where the device is no CPU, a second one with the operands' way there and the results' way
// back, and the fact "kernels on cuda:0".
void add_tessera(Contest& contest, const Setting& setting, std::span<const TensorWork> works);

// The facts "kernels" and "moved bytes" of the program compiled for the CPU.
void add_program_facts(Contest& contest, const TensorWork& work);

}  // namespace tessera::bench
