// Loops that do nothing but keep the processor's arithmetic, or its memory, busy: what measurements
// are shares of. One table per instruction set (see loops.h).
#pragma once

#include <cstdint>

namespace tessera::cpu {

enum class Isa;  // isa.h

struct PeakLoops {
  int64_t flops;                 // of one round of `fma`
  float (*fma)(int64_t rounds);  // independent f32 multiply-adds that stay in registers

  // Over n floats, which overlap nowhere. The `_past` forms write past the caches (non-temporal
  // stores) where the instruction set has such, and are then faster for large n alone; elsewhere
  // they are the plain ones.
  float (*read)(int64_t n, const float* a);                          // their sum
  void (*write)(int64_t n, float* d);                                // d = 1
  void (*copy)(int64_t n, float* d, const float* a);                 // d = a
  void (*add)(int64_t n, float* d, const float* a, const float* b);  // d = a + b
  void (*write_past)(int64_t n, float* d);
  void (*copy_past)(int64_t n, float* d, const float* a);
  void (*add_past)(int64_t n, float* d, const float* a, const float* b);
};

const PeakLoops& peaks(Isa isa);

}  // namespace tessera::cpu
