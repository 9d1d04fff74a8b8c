#include "tessera/backend/cuda/kernels/tile_products.h"

#include "tessera/codegen/text.h"

namespace tessera::cuda {

namespace {

constexpr std::string_view kTiles = R"(
#define WARP 32
#define COLUMNS(n) (((n) + 63) / 64 * 64)
#ifdef __CUDA_ARCH__
#define HAS_MMA (__CUDA_ARCH__ >= 800)
#else
#define HAS_MMA 0
#endif
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define HAS_WGMMA 1
#else
#define HAS_WGMMA 0
#endif

// Where chunk c of row r is, in elements.
DEVICE i32 chunk_at(i32 rows, i32 r, i32 c) {
  return ((c / 8 * rows + r) * 8 + ((c % 8) ^ (r % 8))) * 8;
}

#if HAS_MMA
DEVICE u32 shared_address(const void* at) { return (u32)__cvta_generic_to_shared(at); }
DEVICE u32 pack(f32 low, f32 high) {
  u32 both;
  asm("cvt.rn.$half2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  return both;
}
DEVICE f32 power_of_two(f32 x) {
  f32 y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
DEVICE void fetch_chunk(u16* to, const u16* from, bool inside) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
               :: "r"(shared_address(to)), "l"(from), "r"(inside ? 16 : 0) : "memory");
}
DEVICE void fetch_word(f32* to, const f32* from, bool inside) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;"
               :: "r"(shared_address(to)), "l"(from), "r"(inside ? 4 : 0) : "memory");
}
DEVICE void end_fetches() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <i32 N>
DEVICE void wait_fetches() {
  asm volatile("cp.async.wait_group %0;" :: "n"(N) : "memory");
#if HAS_WGMMA
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}
#else
DEVICE u32 pack(f32 low, f32 high) { return (u32)STORE(low) | (u32)STORE(high) << 16; }
DEVICE f32 power_of_two(f32 x) { return exp2f(x); }
DEVICE void fetch_chunk(u16* to, const u16* from, bool inside) {
  for (i32 i = 0; i < 8; ++i) to[i] = inside ? from[i] : 0;
}
DEVICE void fetch_word(f32* to, const f32* from, bool inside) { *to = inside ? *from : 0; }
DEVICE void end_fetches() {}
template <i32 N>
DEVICE void wait_fetches() {}
#endif

template <i32 R, i32 C>
DEVICE void fetch_tile(u16* tile, const u16* rows, i64 step, i64 first, i64 end) {
  constexpr i32 chunks = COLUMNS(C) / 8;
#pragma unroll
  for (i32 e = LANE; e < R * chunks; e += LANES) {
    const i32 r = e / chunks, c = e % chunks;
    const bool inside = first + r < end && c * 8 < C;
    fetch_chunk(tile + chunk_at(R, r, c), inside ? rows + (first + r) * step + c * 8 : rows, inside);
  }
}
)";

// On the card before Hopper, and after it: a warp at a time, operands through registers.
constexpr std::string_view kByWarps = R"(
#if HAS_WGMMA
$wgmma
#else
template <i32 LEFT, i32 N>
DEVICE void wait_products(f32 (&d)[N][4]) {}
#endif

#if HAS_WGMMA
#elif HAS_MMA
DEVICE void mma(f32 (&d)[4], const u32 (&a)[4], u32 b0, u32 b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.$half.$half.f32 "
               "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
DEVICE void load_matrices(u32 (&to)[4], const u16* at) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(shared_address(at)));
}
DEVICE void load_transposed(u32 (&to)[4], const u16* at) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(shared_address(at)));
}
template <i32 N, i32 K, i32 RA, i32 RB>
DEVICE void across(f32 (&d)[N / 8][4], const u16* a, const u16* b) {
  const i32 lane = LANE % WARP, row = LANE / WARP * 16 + lane % 16;
#pragma unroll
  for (i32 j = 0; j < N / 8; ++j) {
#pragma unroll
    for (i32 i = 0; i < 4; ++i) d[j][i] = 0;
  }
#pragma unroll
  for (i32 k = 0; k < K / 8; k += 2) {
    u32 left[4];
    load_matrices(left, a + chunk_at(RA, row, k + lane / 16));
#pragma unroll
    for (i32 n = 0; n < N; n += 16) {
      u32 right[4];
      load_matrices(right, b + chunk_at(RB, n + lane / 16 * 8 + lane % 8, k + lane / 8 % 2));
      mma(d[n / 8], left, right[0], right[1]);
      mma(d[n / 8 + 1], left, right[2], right[3]);
    }
  }
}
template <i32 N, i32 K, i32 RB>
DEVICE void along(f32 (&d)[N / 8][4], u32 (&a)[K / 16][4], const u16* b) {
  const i32 lane = LANE % WARP;
#pragma unroll
  for (i32 k = 0; k < K / 16; ++k) {
#pragma unroll
    for (i32 n = 0; n < N; n += 16) {
      u32 right[4];
      load_transposed(right, b + chunk_at(RB, k * 16 + lane % 16, n / 8 + lane / 16));
      mma(d[n / 8], a[k], right[0], right[1]);
      mma(d[n / 8 + 1], a[k], right[2], right[3]);
    }
  }
}
#else
DEVICE f32 tile_element(const u16* tile, i32 rows, i32 r, i32 c) {
  return LOAD(tile[chunk_at(rows, r, c / 8) + c % 8]);
}
template <i32 N, i32 K, i32 RA, i32 RB>
DEVICE void across(f32 (&d)[N / 8][4], const u16* a, const u16* b) {
  const i32 lane = LANE % WARP, row = LANE / WARP * 16 + lane / 4, column = lane % 4 * 2;
  for (i32 j = 0; j < N / 8; ++j) {
    for (i32 i = 0; i < 4; ++i) {
      f32 sum = 0;
      for (i32 k = 0; k < K; ++k) {
        sum += tile_element(a, RA, row + 8 * (i / 2), k) *
               tile_element(b, RB, 8 * j + column + i % 2, k);
      }
      d[j][i] = sum;
    }
  }
}
// The four lanes of a row have two of each eight of its columns.
template <i32 N, i32 K, i32 RB>
DEVICE void along(f32 (&d)[N / 8][4], u32 (&a)[K / 16][4], const u16* b) {
  for (i32 k = 0; k < K / 16; ++k) {
    for (i32 other = 0; other < 4; ++other) {
      for (i32 part = 0; part < 4; ++part) {
        const u32 both = __shfl_xor_sync(0xffffffffu, a[k][part], other, WARP);
        const i32 at = k * 16 + part / 2 * 8 + (LANE % 4 ^ other) * 2;
        for (i32 j = 0; j < N / 8; ++j) {
          for (i32 i = 0; i < 2; ++i) {
            const i32 column = 8 * j + LANE % 4 * 2 + i;
            const u16 low = (u16)both, high = (u16)(both >> 16);
            d[j][part % 2 * 2 + i] += LOAD(low) * tile_element(b, RB, at, column) +
                                      LOAD(high) * tile_element(b, RB, at + 1, column);
          }
        }
      }
    }
  }
}
#endif
)";

// Four warps at a time, tiles read where they are.
constexpr std::string_view kWgmma = R"(
// Of a tile whose rows are 128 bytes, in panels `panel` bytes apart.
DEVICE u64 describe(const u16* at, i32 panel) {
  return (u64)((shared_address(at) & 0x3ffff) >> 4) | (u64)(panel >> 4) << 16 |
         (u64)(1024 >> 4) << 32 | (u64)1 << 62;
}
// Products run beside what follows; a lane must not touch their results before it has waited. The
// compiler does not know that, so results pass through an instruction of no effect.
template <i32 N>
DEVICE void pin(f32 (&d)[N][4]) {
#pragma unroll
  for (i32 j = 0; j < N; ++j) {
#pragma unroll
    for (i32 i = 0; i < 4; ++i) asm volatile("" : "+f"(d[j][i]) :: "memory");
  }
}
DEVICE void begin_product() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
DEVICE void end_product() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <i32 LEFT, i32 N>
DEVICE void wait_products(f32 (&d)[N][4]) {
  asm volatile("wgmma.wait_group.sync.aligned %0;" :: "n"(LEFT) : "memory");
  pin(d);
}
$instructions
template <i32 N, i32 K, i32 RA, i32 RB>
DEVICE void across(f32 (&d)[N / 8][4], const u16* a, const u16* b) {
  a += LANE / (4 * WARP) * 64 * 64;
  pin(d);
  begin_product();
#pragma unroll
  for (i32 k = 0; k < K; k += 16) {
    wgmma(d, describe(a + k / 64 * RA * 64 + k % 64, RA * 128),
          describe(b + k / 64 * RB * 64 + k % 64, RB * 128), k != 0);
  }
  end_product();
}
template <i32 N, i32 K, i32 RB>
DEVICE void along(f32 (&d)[N / 8][4], u32 (&a)[K / 16][4], const u16* b) {
  pin(d);
  begin_product();
#pragma unroll
  for (i32 k = 0; k < K / 16; ++k) {
#pragma unroll
    for (i32 n = 0; n < N; n += 64) {
      f32(&part)[8][4] = *(f32(*)[8][4])d[n / 8];
      wgmma(part, a[k], describe(b + n * RB + k * 16 * 64, RB * 128));
    }
  }
  end_product();
}
)";

// Registers %first … %(first + count - 1).
std::string numbers(int first, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += cat(i == 0 ? "%" : ", %", first + i);
  return text;
}

// Results of n columns: operands of both tiles by their descriptions, d = or d +=.
std::string instructions(int n) {
  const int count = n / 2;
  std::string results;
  for (int i = 0; i < count; ++i) {
    results += cat(i == 0 ? "" : ", ", "\"+f\"(d[", i / 4, "][", i % 4, "])");
  }
  const std::string begin = cat("\"wgmma.mma_async.sync.aligned.m64n", n, "k16.f32.$half.$half {",
                                numbers(0, count), "}");
  return cat("DEVICE void wgmma(f32 (&d)[", n / 8, "][4], u64 a, u64 b, i32 adds) {\n",
             "  asm volatile(\"{.reg .pred p;\\nsetp.ne.b32 p, %", count + 2, ", 0;\\n\"\n", begin,
             ", %", count, ", %", count + 1, ", p, 1, 1, 0, 0;}\" : ", results,
             " : \"l\"(a), \"l\"(b), \"r\"(adds));\n}\n", "DEVICE void wgmma(f32 (&d)[", n / 8,
             "][4], const u32 (&a)[4], u64 b) {\n",
             "  asm volatile(\"{.reg .pred p;\\nsetp.ne.b32 p, %", count + 5, ", 0;\\n\"\n", begin,
             ", {", numbers(count, 4), "}, %", count + 4, ", p, 1, 1, 1;}\" : ", results,
             " : \"r\"(a[0]), \"r\"(a[1]), \"r\"(a[2]), \"r\"(a[3]), \"l\"(b), \"r\"(1));\n}\n");
}

}  // namespace

std::string tile_products_text(DType dtype) {
  TESSERA_ASSERT(is_half(dtype));
  std::string all;
  for (const int n : {16, 32, 64}) all += instructions(n);
  std::string text = replace_all(cat(kTiles, kByWarps), "$wgmma", kWgmma);
  text = replace_all(text, "$instructions", all);
  text = replace_all(text, "$half2", dtype == DType::bf16 ? "bf16x2" : "f16x2");
  return replace_all(text, "$half", dtype == DType::bf16 ? "bf16" : "f16");
}

}  // namespace tessera::cuda
