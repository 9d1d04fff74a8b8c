// The conformance table on the default device, where compiling a kernel takes long: each op is
// tried on a few cases; TESSERA_CONFORMANCE=all tries all dtypes, cases and layouts.
#pragma once

#include <gtest/gtest.h>

namespace tessera::test {

// Slices of the table: each a process of its own under ctest, which may run several at once.
inline constexpr int kConformanceSlices = 8;

void check_values(int slice);     // against the interpreter
void check_fusion(int slice);     // fused against unfused
void check_gradients(int slice);  // as the engine builds them, against the interpreter

}  // namespace tessera::test
