// Matrix products of bf16 by instructions that multiply pairs of them: AVX-512 BF16 and AMX. One
// table per instruction set, beside those of gemm.h. Elements are given as their bits.
#pragma once

#include <cstdint>
#include <span>

namespace tessera::cpu {

// Element (i, p) is from[i * step + p * depth_step]; i counts rows of a or columns of b, p along k.
struct Bf16Block {
  const uint16_t* from;
  int64_t count, depth;
  int64_t step, depth_step;
};

struct Bf16Gemm {
  const char* name;
  int rows, columns;  // of a tile
  int unit;           // packed depths are multiples of it

  // Packs up to `rows` rows or `columns` columns, padded with zeros to all of them and to a
  // multiple of `unit` along k. A panel takes rows (or columns) * the padded depth elements.
  void (*pack_a)(uint16_t* to, const Bf16Block& block);
  void (*pack_b)(uint16_t* to, const Bf16Block& block);

  // c[i * c_step + j] (+)= Σ_p a(i, p) · b(p, j) for a whole tile, from packed panels.
  void (*multiply)(int64_t padded_depth, const uint16_t* a, const uint16_t* b, float* c,
                   int64_t c_step, bool add);

  // Around a thread's calls of multiply.
  void (*begin)();
  void (*end)();
};

// Those this processor has and the system lets us use, the best one last.
std::span<const Bf16Gemm* const> available_bf16_gemms();

// The one in use; nullptr: none, bf16 is multiplied in f32. Never one of AVX-512 or later when
// isa() is an older set.
const Bf16Gemm* bf16_gemm();

// For tests: what bf16_gemm returns from here on. Not thread safe.
void set_bf16_gemm(const Bf16Gemm* gemm);

}  // namespace tessera::cpu
