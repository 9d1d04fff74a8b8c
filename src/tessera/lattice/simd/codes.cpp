// Compiled once per instruction set. No symbol but the table may leave this file: the linker would
// merge inline functions of several instruction sets into one. Hence no standard library here.
#include "tessera/lattice/code_kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#define TESSERA_TEXT_(text) #text
#define TESSERA_TEXT(text) TESSERA_TEXT_(text)
#define TESSERA_JOIN_(a, b) a##b
#define TESSERA_JOIN(a, b) TESSERA_JOIN_(a, b)

namespace tessera::lattice {

namespace {

#include "tessera/lattice/simd/vectors.h"
// vectors.h first
#include "tessera/lattice/simd/dot.h"
#include "tessera/lattice/simd/encode.h"
#include "tessera/lattice/simd/scan.h"
// scan.h first
#include "tessera/lattice/simd/planes.h"

void scan(const CodeShape& shape, const std::byte* blocks, int64_t count, const ScanTile& tile) {
  return shape.hot_bytes > 0 ? scan_planes(shape, blocks, count, tile)
                             : scan_whole(shape, blocks, count, tile);
}

}  // namespace

extern constinit const CodeKernels TESSERA_JOIN(kCodes_, TESSERA_SIMD_NAME);
constinit const CodeKernels TESSERA_JOIN(kCodes_, TESSERA_SIMD_NAME) = {
    TESSERA_TEXT(TESSERA_SIMD_NAME), rotate, encode, quantize, products, scan, begin, end};

}  // namespace tessera::lattice
