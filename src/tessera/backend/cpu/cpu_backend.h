// The CPU backend: generated kernels run over tiles, named kernels are compiled in. Work is done at
// once, in the caller's thread and the process-wide pool; streams are all the same.
//
//   TESSERA_ISA     baseline | avx2 | avx512; the best the processor has when unset
//   TESSERA_ONEDNN  which f32 matrix products go to oneDNN where it is installed, run by our own
//                   threads (bench/gemm.cpp compares the two). 0: none. 1: all large ones. Unset:
//                   those where it is known to be faster.
#pragma once

#include <memory>

#include "tessera/runtime/backend.h"

namespace tessera {

std::unique_ptr<Backend> make_cpu_backend();

}  // namespace tessera
