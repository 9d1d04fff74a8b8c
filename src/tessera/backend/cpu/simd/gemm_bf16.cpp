// Compiled for AVX-512 BF16 and once more with AMX, under the rule of simd/loops.cpp: no symbol but
// the table may leave this file.
#include "tessera/backend/cpu/gemm_bf16.h"

#include <immintrin.h>

#define TESSERA_INLINE [[gnu::always_inline]] inline
#define TESSERA_TEXT_(text) #text
#define TESSERA_TEXT(text) TESSERA_TEXT_(text)
#define TESSERA_JOIN_(a, b) a##b
#define TESSERA_JOIN(a, b) TESSERA_JOIN_(a, b)

namespace tessera::cpu {

namespace {

// Two neighbours along k are multiplied at once: they are packed side by side, as one of these.
using Pair = uint32_t;
typedef Pair Quad __attribute__((vector_size(16)));

constexpr int kColumns = 32;  // two vectors, or two tiles

TESSERA_INLINE Pair pair_of(const Bf16Block& b, int64_t i, int64_t p) {
  const uint16_t* at = b.from + i * b.step + p * b.depth_step;
  return at[0] | (p + 1 < b.depth ? Pair(at[b.depth_step]) << 16 : 0);
}

TESSERA_INLINE void load_quad(Quad& to, const uint16_t* from) {
  __builtin_memcpy(&to, from, sizeof to);
}

// Turns 4 x 4 pairs.
TESSERA_INLINE void transpose_quads(Quad (&q)[4]) {
  const Quad ab0 = __builtin_shufflevector(q[0], q[1], 0, 4, 1, 5);
  const Quad ab1 = __builtin_shufflevector(q[0], q[1], 2, 6, 3, 7);
  const Quad cd0 = __builtin_shufflevector(q[2], q[3], 0, 4, 1, 5);
  const Quad cd1 = __builtin_shufflevector(q[2], q[3], 2, 6, 3, 7);
  q[0] = __builtin_shufflevector(ab0, cd0, 0, 1, 4, 5);
  q[1] = __builtin_shufflevector(ab0, cd0, 2, 3, 6, 7);
  q[2] = __builtin_shufflevector(ab1, cd1, 0, 1, 4, 5);
  q[3] = __builtin_shufflevector(ab1, cd1, 2, 3, 6, 7);
}

// to[p / 2 * kStep + i] = the pair (i, p), (i, p + 1): for lines that are contiguous along k.
template <int kStep>
TESSERA_INLINE void pack_pairs_across(Pair* to, const Bf16Block& b) {
  const int64_t whole = b.depth / 8 * 8;
  int64_t i = 0;
  for (; i + 4 <= b.count; i += 4) {
    for (int64_t p = 0; p < whole; p += 8) {
      Quad q[4];
      for (int r = 0; r < 4; ++r) load_quad(q[r], b.from + (i + r) * b.step + p);
      transpose_quads(q);
      for (int r = 0; r < 4; ++r) {
        __builtin_memcpy(to + (p / 2 + r) * kStep + i, &q[r], sizeof q[r]);
      }
    }
  }
  for (int64_t j = 0; j < b.count; ++j) {
    for (int64_t p = j < i ? whole : 0; p < b.depth; p += 2) {
      to[p / 2 * kStep + j] = pair_of(b, j, p);
    }
  }
}

// The same for lines that are contiguous across k: kStep elements of two of them are interleaved.
template <int kStep>
TESSERA_INLINE void pack_pairs_along(Pair* to, const Bf16Block& b) {
  int64_t p = 0;
  for (; p + 2 <= b.depth && b.count == kStep; p += 2, to += kStep) {
    const uint16_t *even = b.from + p * b.depth_step, *odd = even + b.depth_step;
    __builtin_prefetch(even + 8 * b.depth_step);
    __builtin_prefetch(odd + 8 * b.depth_step);
    for (int i = 0; i < kStep; ++i) to[i] = even[i] | Pair(odd[i]) << 16;
  }
  for (; p < b.depth; p += 2, to += kStep) {
    for (int64_t i = 0; i < b.count; ++i) to[i] = pair_of(b, i, p);
  }
}

template <int kStep>
TESSERA_INLINE void pack_pairs(Pair* to, const Bf16Block& b, int64_t padded_depth) {
  if (b.count < kStep) __builtin_memset(to, 0, size_t(padded_depth / 2 * kStep) * sizeof(Pair));
  if (b.depth_step == 1) {
    pack_pairs_across<kStep>(to, b);
  } else if (b.step == 1) {
    pack_pairs_along<kStep>(to, b);
  } else {
    for (int64_t p = 0; p < b.depth; p += 2) {
      for (int64_t i = 0; i < b.count; ++i) to[p / 2 * kStep + i] = pair_of(b, i, p);
    }
  }
  const int64_t filled = (b.depth + 1) / 2;
  __builtin_memset(to + filled * kStep, 0,
                   size_t(padded_depth / 2 - filled) * kStep * sizeof(Pair));
}

#if defined(__AMX_BF16__)

constexpr int kRows = 32, kUnit = 32;
constexpr int kTileBytes = 64;  // of a tile's row; a tile has 16

// As [depth / kUnit][kRows][kUnit].
void pack_a(uint16_t* to, const Bf16Block& b) {
  for (int64_t p = 0; p < b.depth; p += kUnit, to += kRows * kUnit) {
    Bf16Block part = b;
    part.from += p * b.depth_step;
    part.depth = b.depth - p < kUnit ? b.depth - p : kUnit;
    if (part.depth < kUnit || b.count < kRows) __builtin_memset(to, 0, kRows * kUnit * sizeof *to);
    if (b.depth_step == 1) {
      for (int64_t i = 0; i < b.count; ++i) {
        const uint16_t* from = part.from + i * b.step;
        __builtin_prefetch(from + 4 * kUnit);
        if (part.depth == kUnit) {
          __builtin_memcpy(to + i * kUnit, from, kTileBytes);
        } else {
          for (int64_t q = 0; q < part.depth; ++q) to[i * kUnit + q] = from[q];
        }
      }
      continue;
    }
    // Pairs first, then turned: [kUnit / 2][kRows] to [kRows][kUnit / 2].
    alignas(64) Pair pairs[kUnit / 2 * kRows];
    pack_pairs<kRows>(pairs, part, kUnit);
    for (int i = 0; i < kRows; i += 4) {
      for (int q = 0; q < kUnit / 2; q += 4) {
        Quad quads[4];
        for (int r = 0; r < 4; ++r) __builtin_memcpy(&quads[r], pairs + (q + r) * kRows + i, 16);
        transpose_quads(quads);
        for (int r = 0; r < 4; ++r) __builtin_memcpy(to + (i + r) * kUnit + 2 * q, &quads[r], 16);
      }
    }
  }
}

// Tiles 0 to 3 are c, 4 and 5 a, 6 and 7 b.
void multiply(int64_t depth, const uint16_t* a, const uint16_t* b, float* c, int64_t c_step,
              bool add) {
  const int64_t c_bytes = c_step * int64_t(sizeof(float));
  constexpr int64_t kPanelBytes = kColumns * int64_t(sizeof(Pair));
  if (add) {
    _tile_loadd(0, c, c_bytes);
    _tile_loadd(1, c + 16, c_bytes);
    _tile_loadd(2, c + 16 * c_step, c_bytes);
    _tile_loadd(3, c + 16 * c_step + 16, c_bytes);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  for (int64_t p = 0; p < depth; p += kUnit, a += kRows * kUnit, b += kUnit * kColumns) {
    _tile_loadd(4, a, kTileBytes);
    _tile_loadd(6, b, kPanelBytes);
    _tile_loadd(7, b + kTileBytes / 2, kPanelBytes);
    _tile_loadd(5, a + 16 * kUnit, kTileBytes);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, c, c_bytes);
  _tile_stored(1, c + 16, c_bytes);
  _tile_stored(2, c + 16 * c_step, c_bytes);
  _tile_stored(3, c + 16 * c_step + 16, c_bytes);
}

struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};

  constexpr TileConfig() {
    for (int i = 0; i < 8; ++i) {
      row_bytes[i] = kTileBytes;
      rows[i] = 16;
    }
  }
};
static_assert(sizeof(TileConfig) == 64);

// A constant: compilers do not see that the instruction reads all of it, and could drop stores.
constexpr TileConfig kTileConfig;

void begin() { _tile_loadconfig(&kTileConfig); }
void end() { _tile_release(); }

#else

constexpr int kRows = 12, kUnit = 2;

// As pairs [depth / 2][kRows].
void pack_a(uint16_t* to, const Bf16Block& b) {
  pack_pairs<kRows>(reinterpret_cast<Pair*>(to), b, (b.depth + 1) / 2 * 2);
}

void multiply(int64_t depth, const uint16_t* a, const uint16_t* b, float* c, int64_t c_step,
              bool add) {
  __m512 acc[kRows][2] = {};
  for (int64_t p = 0; p < depth; p += 2, a += 2 * kRows, b += 2 * kColumns) {
    const __m512bh b0 = (__m512bh)_mm512_loadu_si512(b);
    const __m512bh b1 = (__m512bh)_mm512_loadu_si512(b + kColumns);
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      int pair;
      __builtin_memcpy(&pair, a + 2 * i, sizeof pair);
      const __m512bh factor = (__m512bh)_mm512_set1_epi32(pair);
      acc[i][0] = _mm512_dpbf16_ps(acc[i][0], factor, b0);
      acc[i][1] = _mm512_dpbf16_ps(acc[i][1], factor, b1);
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i, c += c_step) {
#pragma GCC unroll 2
    for (int w = 0; w < 2; ++w) {
      float* to = c + 16 * w;
      _mm512_storeu_ps(to, add ? _mm512_loadu_ps(to) + acc[i][w] : acc[i][w]);
    }
  }
}

void begin() {}
void end() {}

#endif

// As pairs [depth / 2][kColumns].
void pack_b(uint16_t* to, const Bf16Block& b) {
  pack_pairs<kColumns>(reinterpret_cast<Pair*>(to), b, (b.depth + kUnit - 1) / kUnit * kUnit);
}

}  // namespace

extern constinit const Bf16Gemm TESSERA_JOIN(kGemmBf16_, TESSERA_SIMD_NAME);
constinit const Bf16Gemm TESSERA_JOIN(kGemmBf16_, TESSERA_SIMD_NAME) = {
    TESSERA_TEXT(TESSERA_SIMD_NAME), kRows, kColumns, kUnit, pack_a, pack_b, multiply, begin, end};

}  // namespace tessera::cpu
