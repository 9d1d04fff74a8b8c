// Compiled once per instruction set, with TESSERA_SIMD_NAME naming it. Everything here has internal
// linkage but the table: an inline function shared with other files, compiled with wider
// instructions, could be the copy the linker keeps, and would then crash on older processors.
// The build checks the objects (check_linkage.cmake).
#include "tessera/backend/cpu/loops.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define TESSERA_INLINE [[gnu::always_inline]] inline
#define TESSERA_JOIN_(a, b) a##b
#define TESSERA_JOIN(a, b) TESSERA_JOIN_(a, b)

namespace tessera::cpu {

namespace {

#include "tessera/backend/cpu/simd/types.h"
//
#include "tessera/backend/cpu/simd/wide.h"
//
#include "tessera/backend/cpu/simd/math.h"
//
#include "tessera/backend/cpu/simd/trigonometry.h"
//
#include "tessera/backend/cpu/simd/powers.h"
//
#include "tessera/backend/cpu/simd/elementwise.h"
#include "tessera/backend/cpu/simd/move.h"
#include "tessera/backend/cpu/simd/random.h"
#include "tessera/backend/cpu/simd/reduce.h"
//
#include "tessera/backend/cpu/simd/chain.h"
#include "tessera/backend/cpu/simd/exp_below.h"
//
#include "tessera/backend/cpu/simd/rows.h"
//
#include "tessera/backend/cpu/simd/finish.h"

constexpr LoopTable make_table() {
  LoopTable table{};
  fill_scalars(table);
  table.scalar[int(ScalarOp::uniform)][int(DType::i64)] = uniform_loop;
  fill_casts(table);
  fill_moves(table);
  fill_folds(table);
  fill_chains(table);
  fill_rows(table);
  fill_finishes(table);
  return table;
}

}  // namespace

extern constinit const LoopTable TESSERA_JOIN(kLoops_, TESSERA_SIMD_NAME);
constinit const LoopTable TESSERA_JOIN(kLoops_, TESSERA_SIMD_NAME) = make_table();

}  // namespace tessera::cpu
