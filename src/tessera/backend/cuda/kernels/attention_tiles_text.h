// The source of attention on the tensor cores; tile_products.h has what it is made of.
//
// A group has a tile of ROWS queries, 16 a warp, and walks along the keys in tiles of COLS, two in
// flight; for the gradients of keys and values it is the other way round. Scores stay in registers.
// Exponents are powers of two.
#pragma once

#include <string_view>

namespace tessera::cuda {

inline constexpr std::string_view kTileSizes = R"(
#define LANES $lanes
#define ROWS $rows
#define COLS $cols
#define OPTIONS $options  // base/attention_options.h
)";

inline constexpr std::string_view kTileCommon = R"(
#define DP COLUMNS(D)
#define EP COLUMNS(E)
#define LOG2_E 1.4426950408889634f
#define LN_2 0.6931471805599453f

// Shared memory of a launch, tiles first.
DEVICE u16* shared_tiles() {
  extern __shared__ u8 room[];
  return (u16*)(((u64)room + 1023) / 1024 * 1024);
}

// The end of what query t sees, 0 where it is no query.
DEVICE i32 limit_of(i64 t, i64 count, const Attention* p) {
  return t < p->queries ? (i32)key_end(t, count, p) : 0;
}

// What a mask adds to the score of (t, s), in powers of two.
DEVICE f32 masked(f32 score, i64 b, i64 h, i64 t, i64 s, const $M* mask, const Attention* p) {
#if OPTIONS & 2
  const $M m = mask[b * p->mask.at[0] + h * p->mask.at[1] + t * p->mask.at[2] + s * p->mask.at[3]];
  const f32 dot = score * LN_2;
  return ($masked) * LOG2_E;
#else
  return score;
#endif
}

template <i32 N>
DEVICE void clear(f32 (&d)[N][4]) {
#pragma unroll
  for (i32 j = 0; j < N; ++j) {
#pragma unroll
    for (i32 i = 0; i < 4; ++i) d[j][i] = 0;
  }
}

template <i32 N>
DEVICE void pack_rows(u32 (&to)[N / 2][4], const f32 (&from)[N][4]) {
#pragma unroll
  for (i32 j = 0; j < N; ++j) {
    to[j / 2][j % 2 * 2] = pack(from[j][0], from[j][1]);
    to[j / 2][j % 2 * 2 + 1] = pack(from[j][2], from[j][3]);
  }
}

// Rows of a result into ones of C columns in memory, `step` apart, times a factor each.
template <i32 N, i32 C>
DEVICE void store_rows(u16* to, i64 step, const f32 (&d)[N][4], i64 first, i64 end, f32 upper,
                       f32 lower) {
  const i32 lane = LANE % WARP;
#pragma unroll
  for (i32 half = 0; half < 2; ++half) {
    const i64 row = first + LANE / WARP * 16 + lane / 4 + 8 * half;
    const f32 factor = half == 0 ? upper : lower;
#pragma unroll
    for (i32 j = 0; j < N; ++j) {
      const i32 column = 8 * j + lane % 4 * 2;
      if (row >= end || column >= C) continue;
      *(u32*)(to + row * step + column) = pack(d[j][2 * half] * factor, d[j][2 * half + 1] * factor);
    }
  }
}
)";

inline constexpr std::string_view kTileForward = R"(
KERNEL_OF(LANES)
tessera_attention_tiles(const $S* q, i64 q_start, const $S* k, i64 k_start, const $S* v,
                        i64 v_start, const $M* mask, i64 mask_start, const i64* lengths,
                        i64 lengths_start, const i64* key, i64 key_start, const i64* offset,
                        i64 offset_start, $S* y, i64 y_start, f32* lse, i64 lse_start, Attention p,
                        i32 wanted) {
  u16* const q_tile = shared_tiles();
  u16* const k_tiles = q_tile + ROWS * DP;
  u16* const v_tiles = k_tiles + 2 * COLS * DP;
  const i64 blocks = (p.queries + ROWS - 1) / ROWS;
  const i64 t0 = (blocks - 1 - (i64)GROUP % blocks) * ROWS;  // long ones first
  const i64 bh = (i64)GROUP / blocks, b = bh / p.heads, h = bh % p.heads;
  const i64 group = h / (p.heads / p.groups);
  q += q_start + b * p.q.at[0] + h * p.q.at[1];
  k += k_start + b * p.k.at[0] + group * p.k.at[1];
  v += v_start + b * p.v.at[0] + group * p.v.at[1];
  const i64 count = key_count(lengths + lengths_start, b, &p);
  const i64 end = key_end(min(t0 + ROWS, p.queries) - 1, count, &p);
  const i32 lane = LANE % WARP, row0 = LANE / WARP * 16 + lane / 4;
  const i32 limits[2] = {limit_of(t0 + row0, count, &p), limit_of(t0 + row0 + 8, count, &p)};
  // Up to here every row of the warp sees all keys.
  const i64 warp_row = t0 + LANE / WARP * 16;
  const i32 clear_end = limit_of(warp_row, count, &p) < limit_of(warp_row + 15, count, &p)
                            ? limit_of(warp_row, count, &p) : limit_of(warp_row + 15, count, &p);
  const f32 scale = p.scale * LOG2_E;
  fetch_tile<ROWS, D>(q_tile, q, p.q.at[2], t0, p.queries);
  fetch_tile<COLS, D>(k_tiles, k, p.k.at[2], 0, end);
  fetch_tile<COLS, E>(v_tiles, v, p.v.at[2], 0, end);
  end_fetches();
  f32 sums[EP / 8][4], top[2] = {UNSEEN, UNSEEN}, total[2] = {0, 0};
  clear(sums);
  i32 turn = 0;
  for (i64 s0 = 0; s0 < end; s0 += COLS, turn ^= 1) {
    wait_fetches<0>();
    BARRIER;
    if (s0 + COLS < end) {
      fetch_tile<COLS, D>(k_tiles + (turn ^ 1) * COLS * DP, k, p.k.at[2], s0 + COLS, end);
      fetch_tile<COLS, E>(v_tiles + (turn ^ 1) * COLS * EP, v, p.v.at[2], s0 + COLS, end);
    }
    end_fetches();
    f32 scores[COLS / 8][4];
    across<COLS, DP, ROWS, COLS>(scores, q_tile, k_tiles + turn * COLS * DP);
    wait_products<0>(scores);
    // Products before they are scaled, but for those that a mask changes.
    f32 unit = scale;
    if ((OPTIONS & 2) || s0 + COLS > clear_end) {
      unit = 1;
#pragma unroll
      for (i32 j = 0; j < COLS / 8; ++j) {
#pragma unroll
        for (i32 i = 0; i < 4; ++i) {
          const i32 s = (i32)s0 + 8 * j + lane % 4 * 2 + i % 2;
          scores[j][i] = s < limits[i / 2]
                             ? masked(scores[j][i] * scale, b, h, t0 + row0 + i / 2 * 8, s,
                                      mask + mask_start, &p)
                             : UNSEEN;
        }
      }
    }
    f32 best[2] = {UNSEEN, UNSEEN};
#pragma unroll
    for (i32 j = 0; j < COLS / 8; ++j) {
#pragma unroll
      for (i32 i = 0; i < 4; ++i) best[i / 2] = fmaxf(best[i / 2], scores[j][i]);
    }
    f32 shift[2], factor[2];
#pragma unroll
    for (i32 r = 0; r < 2; ++r) {
      best[r] = fmaxf(best[r], __shfl_xor_sync(0xffffffffu, best[r], 1, WARP));
      best[r] = fmaxf(best[r], __shfl_xor_sync(0xffffffffu, best[r], 2, WARP));
      best[r] = fmaxf(top[r], best[r] * unit);
      shift[r] = best[r] == UNSEEN ? 0 : best[r];  // -inf less -inf has no value
      factor[r] = power_of_two(top[r] - shift[r]);
      total[r] *= factor[r];
      top[r] = best[r];
    }
#pragma unroll
    for (i32 j = 0; j < COLS / 8; ++j) {
#pragma unroll
      for (i32 i = 0; i < 4; ++i) {
        f32 weight = power_of_two(scores[j][i] * unit - shift[i / 2]);
        total[i / 2] += weight;
#if OPTIONS & 8
        const i64 s = s0 + 8 * j + lane % 4 * 2 + i % 2;
        weight *= kept_of(b, h, t0 + row0 + i / 2 * 8, s, key[key_start], offset[offset_start], &p);
#endif
        scores[j][i] = weight;
      }
    }
    u32 weights[COLS / 16][4];
    pack_rows(weights, scores);
#pragma unroll
    for (i32 j = 0; j < EP / 8; ++j) {
#pragma unroll
      for (i32 i = 0; i < 4; ++i) sums[j][i] *= factor[i / 2];
    }
    along<EP, COLS, COLS>(sums, weights, v_tiles + turn * COLS * EP);
    wait_products<0>(sums);
  }
#pragma unroll
  for (i32 r = 0; r < 2; ++r) {
    total[r] += __shfl_xor_sync(0xffffffffu, total[r], 1, WARP);
    total[r] += __shfl_xor_sync(0xffffffffu, total[r], 2, WARP);
  }
  // A query that sees no key has y 0 and lse 0.
  if (wanted & 1) {
    store_rows<EP / 8, E>(y + y_start + b * p.y.at[0] + h * p.y.at[1], p.y.at[2], sums, t0,
                          p.queries, top[0] == UNSEEN ? 0 : 1 / total[0],
                          top[1] == UNSEEN ? 0 : 1 / total[1]);
  }
  if ((wanted & 2) && lane % 4 == 0) {
#pragma unroll
    for (i32 r = 0; r < 2; ++r) {
      const i64 t = t0 + row0 + 8 * r;
      if (t >= p.queries) continue;
      lse[lse_start + bh * p.queries + t] =
          top[r] == UNSEEN ? 0 : top[r] * LN_2 + logf(total[r]);
    }
  }
}
)";

// The gradients. With P = exp(score - lse) and f what dropout does:
// ds = P · (f(g vᵀ) - Σ g · y). The last term is found first, for every query.
inline constexpr std::string_view kTileTerms = R"(
#define PARTS (EP / 8)  // chunks of a row, a lane each
struct alignas(16) Chunk {
  u16 v[8];
};

KERNEL_OF(256)
tessera_attention_terms(const $S* g, i64 g_start, const $S* y, i64 y_start, f32* terms,
                        Attention p) {
  const i64 row = ((i64)GROUP * 256 + LANE) / PARTS, rows = p.batch * p.heads * p.queries;
  const i32 part = LANE % PARTS;
  const i64 t = row % p.queries, h = row / p.queries % p.heads, b = row / p.queries / p.heads;
  f32 sum = 0;
  if (row < rows && part * 8 < E) {
    const Chunk gs = *(const Chunk*)(g + g_start + b * p.g.at[0] + h * p.g.at[1] + t * p.g.at[2] +
                                     part * 8);
    const Chunk ys = *(const Chunk*)(y + y_start + b * p.y.at[0] + h * p.y.at[1] + t * p.y.at[2] +
                                     part * 8);
#pragma unroll
    for (i32 i = 0; i < 8; ++i) sum += LOAD(gs.v[i]) * LOAD(ys.v[i]);
  }
#pragma unroll
  for (i32 step = PARTS / 2; step > 0; step /= 2) {
    sum += __shfl_xor_sync(0xffffffffu, sum, step, WARP);
  }
  if (row < rows && part == 0) terms[row] = sum;
}
)";

inline constexpr std::string_view kTileQueries = R"(
KERNEL_OF(LANES)
tessera_attention_query_tiles(const $S* g, i64 g_start, const $S* q, i64 q_start, const $S* k,
                              i64 k_start, const $S* v, i64 v_start, const $S* y, i64 y_start,
                              const f32* lse, i64 lse_start, const $M* mask, i64 mask_start,
                              const i64* lengths, i64 lengths_start, const i64* key, i64 key_start,
                              const i64* offset, i64 offset_start, $S* dq, i64 dq_start,
                              const f32* terms, Attention p) {
  u16* const q_tile = shared_tiles();
  u16* const g_tile = q_tile + ROWS * DP;
  u16* const k_tiles = g_tile + ROWS * EP;
  u16* const v_tiles = k_tiles + 2 * COLS * DP;
  const i64 blocks = (p.queries + ROWS - 1) / ROWS;
  const i64 t0 = (blocks - 1 - (i64)GROUP % blocks) * ROWS;
  const i64 bh = (i64)GROUP / blocks, b = bh / p.heads, h = bh % p.heads;
  const i64 group = h / (p.heads / p.groups);
  q += q_start + b * p.q.at[0] + h * p.q.at[1];
  g += g_start + b * p.g.at[0] + h * p.g.at[1];
  k += k_start + b * p.k.at[0] + group * p.k.at[1];
  v += v_start + b * p.v.at[0] + group * p.v.at[1];
  const i64 count = key_count(lengths + lengths_start, b, &p);
  const i64 end = key_end(min(t0 + ROWS, p.queries) - 1, count, &p);
  const i32 lane = LANE % WARP, row0 = LANE / WARP * 16 + lane / 4;
  const i32 limits[2] = {limit_of(t0 + row0, count, &p), limit_of(t0 + row0 + 8, count, &p)};
  const i64 warp_row = t0 + LANE / WARP * 16;
  const i32 clear_end = limit_of(warp_row, count, &p) < limit_of(warp_row + 15, count, &p)
                            ? limit_of(warp_row, count, &p) : limit_of(warp_row + 15, count, &p);
  const f32 scale = p.scale * LOG2_E;
  f32 shift[2], term[2];
#pragma unroll
  for (i32 r = 0; r < 2; ++r) {
    const i64 t = min(t0 + row0 + 8 * r, p.queries - 1);
    shift[r] = lse[lse_start + b * p.lse.at[0] + h * p.lse.at[1] + t * p.lse.at[2]] * LOG2_E;
    term[r] = terms[bh * p.queries + t];
  }
  fetch_tile<ROWS, D>(q_tile, q, p.q.at[2], t0, p.queries);
  fetch_tile<ROWS, E>(g_tile, g, p.g.at[2], t0, p.queries);
  fetch_tile<COLS, D>(k_tiles, k, p.k.at[2], 0, end);
  fetch_tile<COLS, E>(v_tiles, v, p.v.at[2], 0, end);
  end_fetches();
  f32 sums[DP / 8][4];
  clear(sums);
  i32 turn = 0;
  for (i64 s0 = 0; s0 < end; s0 += COLS, turn ^= 1) {
    const u16 *k_tile = k_tiles + turn * COLS * DP, *v_tile = v_tiles + turn * COLS * EP;
    wait_fetches<0>();
    BARRIER;
    if (s0 + COLS < end) {
      fetch_tile<COLS, D>(k_tiles + (turn ^ 1) * COLS * DP, k, p.k.at[2], s0 + COLS, end);
      fetch_tile<COLS, E>(v_tiles + (turn ^ 1) * COLS * EP, v, p.v.at[2], s0 + COLS, end);
    }
    end_fetches();
    f32 scores[COLS / 8][4], slopes[COLS / 8][4];
    across<COLS, DP, ROWS, COLS>(scores, q_tile, k_tile);
    across<COLS, EP, ROWS, COLS>(slopes, g_tile, v_tile);
    wait_products<1>(scores);
#pragma unroll
    for (i32 j = 0; j < COLS / 8; ++j) {
#pragma unroll
      for (i32 i = 0; i < 4; ++i) {
        f32 score = scores[j][i] * scale;
        const i32 s = (i32)s0 + 8 * j + lane % 4 * 2 + i % 2;
        if ((OPTIONS & 2) || s0 + COLS > clear_end) {
          score = s < limits[i / 2] ? masked(score, b, h, t0 + row0 + i / 2 * 8, s,
                                             mask + mask_start, &p) : UNSEEN;
        }
        scores[j][i] = power_of_two(score - shift[i / 2]);
      }
    }
    wait_products<0>(slopes);
#pragma unroll
    for (i32 j = 0; j < COLS / 8; ++j) {
#pragma unroll
      for (i32 i = 0; i < 4; ++i) {
        f32 slope = slopes[j][i];
#if OPTIONS & 8
        const i64 s = s0 + 8 * j + lane % 4 * 2 + i % 2;
        slope *= kept_of(b, h, t0 + row0 + i / 2 * 8, s, key[key_start], offset[offset_start], &p);
#endif
        scores[j][i] *= slope - term[i / 2];
      }
    }
    u32 ds[COLS / 16][4];
    pack_rows(ds, scores);
    along<DP, COLS, COLS>(sums, ds, k_tile);
    wait_products<0>(sums);
  }
  store_rows<DP / 8, D>(dq + dq_start + b * p.dq.at[0] + h * p.dq.at[1], p.dq.at[2], sums, t0,
                        p.queries, p.scale, p.scale);
}
)";

// Rows are keys here, and columns queries.
inline constexpr std::string_view kTileKeys = R"(
KERNEL_OF(LANES)
tessera_attention_key_tiles(const $S* g, i64 g_start, const $S* q, i64 q_start, const $S* k,
                            i64 k_start, const $S* v, i64 v_start, const $S* y, i64 y_start,
                            const f32* lse, i64 lse_start, const $M* mask, i64 mask_start,
                            const i64* lengths, i64 lengths_start, const i64* key, i64 key_start,
                            const i64* offset, i64 offset_start, $S* dk, i64 dk_start, $S* dv,
                            i64 dv_start, const f32* terms, Attention p, i32 wanted) {
  u16* const k_tile = shared_tiles();
  u16* const v_tile = k_tile + ROWS * DP;
  u16* const q_tiles = v_tile + ROWS * EP;
  u16* const g_tiles = q_tiles + 2 * COLS * DP;
  f32* const shifts = (f32*)(g_tiles + 2 * COLS * EP);  // 2 × COLS
  f32* const term_tiles = shifts + 2 * COLS;
  const i64 blocks = (p.keys + ROWS - 1) / ROWS, s0 = (i64)GROUP % blocks * ROWS;
  const i64 bg = (i64)GROUP / blocks, b = bg / p.groups, group = bg % p.groups;
  const i64 shared = p.heads / p.groups;
  const i64 count = key_count(lengths + lengths_start, b, &p);
  const i32 lane = LANE % WARP, row0 = LANE / WARP * 16 + lane / 4;
  const f32 scale = p.scale * LOG2_E;
  // Tiles of queries whose last may see the first key.
  const i64 tiles = (p.queries + COLS - 1) / COLS;
  const i64 first_seeing = (OPTIONS & 1) ? max(s0 - (p.keys - p.queries), (i64)0) : 0;
  const i64 first_tile = s0 < count ? min(first_seeing / COLS, tiles) : tiles;
  const i64 each = tiles - first_tile, turns = shared * each;
  auto fetch = [&](i64 turn) {
    const i64 h = group * shared + turn / each, t0 = (first_tile + turn % each) * COLS;
    const i32 half = (i32)(turn % 2);
    fetch_tile<COLS, D>(q_tiles + half * COLS * DP, q + q_start + b * p.q.at[0] + h * p.q.at[1],
                        p.q.at[2], t0, p.queries);
    fetch_tile<COLS, E>(g_tiles + half * COLS * EP, g + g_start + b * p.g.at[0] + h * p.g.at[1],
                        p.g.at[2], t0, p.queries);
    for (i32 i = LANE; i < COLS; i += LANES) {
      const bool inside = t0 + i < p.queries;
      const i64 t = inside ? t0 + i : 0;
      fetch_word(shifts + half * COLS + i,
                 lse + lse_start + b * p.lse.at[0] + h * p.lse.at[1] + t * p.lse.at[2], inside);
      fetch_word(term_tiles + half * COLS + i, terms + (b * p.heads + h) * p.queries + t, inside);
    }
  };
  fetch_tile<ROWS, D>(k_tile, k + k_start + b * p.k.at[0] + group * p.k.at[1], p.k.at[2], s0,
                      count);
  fetch_tile<ROWS, E>(v_tile, v + v_start + b * p.v.at[0] + group * p.v.at[1], p.v.at[2], s0,
                      count);
  if (turns > 0) fetch(0);
  end_fetches();
  f32 k_sums[DP / 8][4], v_sums[EP / 8][4];
  clear(k_sums);
  clear(v_sums);
  for (i64 turn = 0; turn < turns; ++turn) {
    wait_fetches<0>();
    BARRIER;
    if (turn + 1 < turns) fetch(turn + 1);
    end_fetches();
    const i64 h = group * shared + turn / each, t0 = (first_tile + turn % each) * COLS;
    const i32 half = (i32)(turn % 2);
    const u16 *q_tile = q_tiles + half * COLS * DP, *g_tile = g_tiles + half * COLS * EP;
    const f32 *shift = shifts + half * COLS, *term = term_tiles + half * COLS;
    f32 scores[COLS / 8][4], slopes[COLS / 8][4];
    across<COLS, DP, ROWS, COLS>(scores, k_tile, q_tile);
    across<COLS, EP, ROWS, COLS>(slopes, v_tile, g_tile);
    wait_products<1>(scores);
    // Every query of the tile sees every key of the group.
    const bool is_clear = t0 + COLS <= p.queries && s0 + ROWS <= key_end(t0, count, &p);
#pragma unroll
    for (i32 j = 0; j < COLS / 8; ++j) {
#pragma unroll
      for (i32 i = 0; i < 4; ++i) {
        const i32 column = 8 * j + lane % 4 * 2 + i % 2;
        f32 score = scores[j][i] * scale;
        if ((OPTIONS & 2) || !is_clear) {
          const i64 t = t0 + column, s = s0 + row0 + i / 2 * 8;
          score = s < limit_of(t, count, &p) ? masked(score, b, h, t, s, mask + mask_start, &p)
                                             : UNSEEN;
        }
        scores[j][i] = power_of_two(score - shift[column] * LOG2_E);
      }
    }
    u32 v_rows[COLS / 16][4], k_rows[COLS / 16][4];
#if OPTIONS & 8
    f32 kept[COLS / 8][4];
#pragma unroll
    for (i32 j = 0; j < COLS / 8; ++j) {
#pragma unroll
      for (i32 i = 0; i < 4; ++i) {
        const i64 t = t0 + 8 * j + lane % 4 * 2 + i % 2, s = s0 + row0 + i / 2 * 8;
        kept[j][i] = kept_of(b, h, t, s, key[key_start], offset[offset_start], &p);
      }
    }
    wait_products<0>(slopes);
#pragma unroll
    for (i32 j = 0; j < COLS / 8; ++j) {
#pragma unroll
      for (i32 i = 0; i < 4; ++i) {
        const f32 slope = slopes[j][i] * kept[j][i] - term[8 * j + lane % 4 * 2 + i % 2];
        slopes[j][i] = scores[j][i] * slope;
        scores[j][i] *= kept[j][i];
      }
    }
    pack_rows(v_rows, scores);
    along<EP, COLS, COLS>(v_sums, v_rows, g_tile);
#else
    pack_rows(v_rows, scores);
    along<EP, COLS, COLS>(v_sums, v_rows, g_tile);
    wait_products<1>(slopes);
#pragma unroll
    for (i32 j = 0; j < COLS / 8; ++j) {
#pragma unroll
      for (i32 i = 0; i < 4; ++i) {
        slopes[j][i] = scores[j][i] * (slopes[j][i] - term[8 * j + lane % 4 * 2 + i % 2]);
      }
    }
#endif
    pack_rows(k_rows, slopes);
    along<DP, COLS, COLS>(k_sums, k_rows, q_tile);
    wait_products<0>(v_sums);
    wait_products<0>(k_sums);
  }
  if (wanted & 1) {
    store_rows<DP / 8, D>(dk + dk_start + b * p.dk.at[0] + group * p.dk.at[1], p.dk.at[2], k_sums,
                          s0, p.keys, p.scale, p.scale);
  }
  if (wanted & 2) {
    store_rows<EP / 8, E>(dv + dv_start + b * p.dv.at[0] + group * p.dv.at[1], p.dv.at[2], v_sums,
                          s0, p.keys, 1, 1);
  }
}
)";

}  // namespace tessera::cuda
