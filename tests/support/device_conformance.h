// The conformance table on the default device, where compiling a kernel takes long: each op is
// tried on a few cases; TESSERA_CONFORMANCE=cases tries all dtypes and cases, whose layouts take
// turns, and TESSERA_CONFORMANCE=all the layouts, too.
#pragma once

#include <gtest/gtest.h>

namespace tessera::test {

// Slices of the table: each a process of its own under ctest, which may run several at once.
inline constexpr int kConformanceSlices = 16;

void check_values(int slice);     // against the interpreter
void check_fusion(int slice);     // fused against unfused
void check_gradients(int slice);  // as the engine builds them, against the interpreter

}  // namespace tessera::test
