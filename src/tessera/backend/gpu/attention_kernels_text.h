// The attention kernels for all types; see attention_text.h.
#pragma once

#include <string_view>

namespace tessera::gpu {

// Scores become weights, which go to local memory, once all lanes of a row know its greatest.
inline constexpr std::string_view kAttentionForward = R"(
KERNEL_OF($bounds)
tessera_attention(GLOBAL const $S* q, i64 q_start, GLOBAL const $S* k, i64 k_start,
                       GLOBAL const $S* v, i64 v_start, GLOBAL const $M* mask, i64 mask_start,
                       GLOBAL const i64* lengths, i64 lengths_start, GLOBAL const i64* key,
                       i64 key_start, GLOBAL const i64* offset, i64 offset_start,
                       GLOBAL $S* y, i64 y_start, GLOBAL $T* lse, i64 lse_start, Attention p,
                       i32 wanted) {
  $room
  p.options = OPTIONS;  // so that compilers see them
  SHARED_PTR Chunk* const q_tile = (SHARED_PTR Chunk*)room;       // (ROWS, D)
  SHARED_PTR Chunk* const k_tile = q_tile + ROWS * STEP(D);       // (COLS, D)
  SHARED_PTR Chunk* const v_tile = k_tile + COLS * STEP(D);       // (COLS, E)
  SHARED_PTR Chunk* const weights = v_tile + COLS * STEP(E);      // (ROWS, COLS)
  SHARED_PTR Chunk* const parts = weights + ROWS * WEIGHTS_STEP;  // (ROWS, X)
  const i32 x = LANE_X, row = FIRST_ROW(LANE_Y), team = row / TEAM_ROWS * TEAM_ROWS;
  const i64 blocks = (p.queries + ROWS - 1) / ROWS;
  const i64 t0 = (blocks - 1 - (i64)GROUP % blocks) * ROWS;  // long ones first
  const i64 bh = (i64)GROUP / blocks, b = bh / p.heads, h = bh % p.heads;
  const i64 group = h / (p.heads / p.groups);
  q += q_start + b * p.q.at[0] + h * p.q.at[1];
  k += k_start + b * p.k.at[0] + group * p.k.at[1];
  v += v_start + b * p.v.at[0] + group * p.v.at[1];
  const i64 count = key_count(lengths + lengths_start, b, &p);
  const i64 end = key_end(min(t0 + ROWS, p.queries) - 1, count, &p);
  const i64 team_end = rows_end(t0 + team, TEAM_ROWS, count, &p);
  const i64 seed = (OPTIONS & 8) ? key[key_start] : 0;
  const i64 first = (OPTIONS & 8) ? offset[offset_start] : 0;
  Chunk sums[RR * PARTS(E)];
  $T top[RR], total[RR];  // the lane's part of the total
  clear(sums, RR * PARTS(E));
$unroll
  for (i32 i = 0; i < RR; ++i) {
    top[i] = UNSEEN;
    total[i] = 0;
  }
  load_tile(q_tile, ROWS, D, $q_packed, q, t0, p.queries, p.q.at[2], p.q.at[3], p.scale);
  for (i64 s0 = 0; s0 < end; s0 += COLS) {
    const Scores tile = scores_of(b, h, t0, s0, COLS, count, &p);
    $T scores[RR][RC];
    BARRIER;
    load_tile(k_tile, COLS, D, $k_packed, k, s0, end, p.k.at[2], p.k.at[3], 1);
    load_tile(v_tile, COLS, E, $v_packed, v, s0, end, p.v.at[2], p.v.at[3], 1);
    BARRIER;
    if (s0 >= team_end) continue;
    multiply_across(scores, q_tile + row * STEP(D), k_tile + x * STEP(D), D);
$unroll
    for (i32 i = 0; i < RR; ++i) {
      $T best = UNSEEN;
$unroll
      for (i32 j = 0; j < RC; ++j) {
        scores[i][j] = score_in(scores[i][j], row + GAP * i, x + X * j, &tile,
                                mask + mask_start, &p);
        best = fmax(best, scores[i][j]);
      }
      ((SHARED_PTR $T*)(parts + (row + GAP * i) * CHUNKS(X)))[x] = best;
    }
    ROW_BARRIER;
$unroll
    for (i32 i = 0; i < RR; ++i) {
      // NaN is passed over: its weight will be NaN.
      const $T best = fmax(top[i], greatest(parts + (row + GAP * i) * CHUNKS(X)));
      const $T shift = best == UNSEEN ? 0 : best;  // -inf less -inf has no value
      const $T factor = EXP(top[i] - shift);
      SHARED_PTR $T* to = (SHARED_PTR $T*)(weights + (row + GAP * i) * WEIGHTS_STEP) + x;
      top[i] = best;
      total[i] *= factor;
      scale(sums + i * PARTS(E), PARTS(E), factor);
$unroll
      for (i32 j = 0; j < RC; ++j) {
        const $T weight = EXP(scores[i][j] - shift);
        total[i] += weight;
        to[X * j] = weight * kept_of(b, h, t0 + row + GAP * i, s0 + x + X * j, seed, first, &p);
      }
    }
    ROW_BARRIER;
    add_product(sums, weights + row * WEIGHTS_STEP, v_tile, E, x);
  }
  BARRIER;
$unroll
  for (i32 i = 0; i < RR; ++i) {
    ((SHARED_PTR $T*)(parts + (row + GAP * i) * CHUNKS(X)))[x] = total[i];
  }
  BARRIER;
  // A query that sees no key has y 0 and lse 0.
  y += y_start + b * p.y.at[0] + h * p.y.at[1];
$unroll
  for (i32 i = 0; i < RR; ++i) {
    const i64 t = t0 + row + GAP * i;
    if (t >= p.queries) continue;
    const $T all = sum_of(parts + (row + GAP * i) * CHUNKS(X));
    if (wanted & 1) {
      scale(sums + i * PARTS(E), PARTS(E), all == 0 ? 0 : 1 / all);
      store_row(y + t * p.y.at[2], p.y.at[3], $y_packed, sums + i * PARTS(E), E, x);
    }
    if ((wanted & 2) && x == 0) {
      lse[lse_start + bh * p.queries + t] = all == 0 ? 0 : top[i] + log(all);
    }
  }
}
)";

// The gradients. With P = exp(score - lse) and f what dropout does:
// ds = P · (f(g vᵀ) - Σ g · y). The last term is found first, for every query.
inline constexpr std::string_view kAttentionTerms = R"(
KERNEL_OF(LANES)
tessera_attention_terms(GLOBAL const $S* g, i64 g_start, GLOBAL const $S* y, i64 y_start,
                             GLOBAL $T* terms, Attention p) {
  SHARED $T parts[LANES];
  const i32 x = (i32)LANE % X;
  const i64 row = (i64)GROUP * Y + (i32)LANE / X, rows = p.batch * p.heads * p.queries;
  const i64 t = row % p.queries, h = row / p.queries % p.heads, b = row / p.queries / p.heads;
  g += g_start + b * p.g.at[0] + h * p.g.at[1] + t * p.g.at[2];
  y += y_start + b * p.y.at[0] + h * p.y.at[1] + t * p.y.at[2];
  $T sum = 0;
  for (i32 e = x; e < E && row < rows; e += X) {
    sum += LOAD(g[e * p.g.at[3]]) * LOAD(y[e * p.y.at[3]]);
  }
  parts[LANE] = sum;
  BARRIER;
  if (x != 0 || row >= rows) return;
  for (i32 i = 1; i < X; ++i) sum += parts[LANE + i];
  terms[row] = sum;
}
)";

inline constexpr std::string_view kAttentionQueries = R"(
KERNEL_OF($bounds)
tessera_attention_queries(GLOBAL const $S* g, i64 g_start, GLOBAL const $S* q, i64 q_start,
                               GLOBAL const $S* k, i64 k_start, GLOBAL const $S* v, i64 v_start,
                               GLOBAL const $S* y, i64 y_start, GLOBAL const $T* lse,
                               i64 lse_start, GLOBAL const $M* mask, i64 mask_start,
                               GLOBAL const i64* lengths, i64 lengths_start,
                               GLOBAL const i64* key, i64 key_start, GLOBAL const i64* offset,
                               i64 offset_start, GLOBAL $S* dq, i64 dq_start,
                               GLOBAL const $T* terms, Attention p) {
  $room
  p.options = OPTIONS;  // so that compilers see them
  SHARED_PTR Chunk* const q_tile = (SHARED_PTR Chunk*)room;  // (ROWS, D)
  SHARED_PTR Chunk* const g_tile = q_tile + ROWS * STEP(D);  // (ROWS, E)
  SHARED_PTR Chunk* const k_tile = g_tile + ROWS * STEP(E);  // (COLS, D)
  SHARED_PTR Chunk* const v_tile = k_tile + COLS * STEP(D);  // (COLS, E)
  SHARED_PTR Chunk* const ds = v_tile + COLS * STEP(E);      // (ROWS, COLS)
  const i32 x = LANE_X, row = FIRST_ROW(LANE_Y), team = row / TEAM_ROWS * TEAM_ROWS;
  const i64 blocks = (p.queries + ROWS - 1) / ROWS;
  const i64 t0 = (blocks - 1 - (i64)GROUP % blocks) * ROWS;
  const i64 bh = (i64)GROUP / blocks, b = bh / p.heads, h = bh % p.heads;
  const i64 group = h / (p.heads / p.groups);
  k += k_start + b * p.k.at[0] + group * p.k.at[1];
  v += v_start + b * p.v.at[0] + group * p.v.at[1];
  const i64 count = key_count(lengths + lengths_start, b, &p);
  const i64 end = key_end(min(t0 + ROWS, p.queries) - 1, count, &p);
  const i64 team_end = rows_end(t0 + team, TEAM_ROWS, count, &p);
  const i64 seed = (OPTIONS & 8) ? key[key_start] : 0;
  const i64 first = (OPTIONS & 8) ? offset[offset_start] : 0;
  Chunk sums[RR * PARTS(D)];
  $T shift[RR], term[RR];
  clear(sums, RR * PARTS(D));
$unroll
  for (i32 i = 0; i < RR; ++i) {
    const i64 t = min(t0 + row + GAP * i, p.queries - 1);
    shift[i] = lse[lse_start + b * p.lse.at[0] + h * p.lse.at[1] + t * p.lse.at[2]];
    term[i] = terms[bh * p.queries + t];
  }
  load_tile(q_tile, ROWS, D, $q_packed, q + q_start + b * p.q.at[0] + h * p.q.at[1], t0, p.queries,
            p.q.at[2], p.q.at[3], p.scale);
  load_tile(g_tile, ROWS, E, $g_packed, g + g_start + b * p.g.at[0] + h * p.g.at[1], t0, p.queries,
            p.g.at[2], p.g.at[3], 1);
  for (i64 s0 = 0; s0 < end; s0 += COLS) {
    const Scores tile = scores_of(b, h, t0, s0, COLS, count, &p);
    BARRIER;
    load_tile(k_tile, COLS, D, $k_packed, k, s0, end, p.k.at[2], p.k.at[3], 1);
    load_tile(v_tile, COLS, E, $v_packed, v, s0, end, p.v.at[2], p.v.at[3], 1);
    BARRIER;
    if (s0 >= team_end) continue;
    $T scores[RR][RC], slopes[RR][RC];
    multiply_across(scores, q_tile + row * STEP(D), k_tile + x * STEP(D), D);
    multiply_across(slopes, g_tile + row * STEP(E), v_tile + x * STEP(E), E);
$unroll
    for (i32 i = 0; i < RR; ++i) {
      SHARED_PTR $T* to = (SHARED_PTR $T*)(ds + (row + GAP * i) * WEIGHTS_STEP) + x;
$unroll
      for (i32 j = 0; j < RC; ++j) {
        const i32 t = row + GAP * i, s = x + X * j;
        const $T score = score_in(scores[i][j], t, s, &tile, mask + mask_start, &p);
        const $T slope = slopes[i][j] * kept_of(b, h, t0 + t, s0 + s, seed, first, &p);
        to[X * j] = EXP(score - shift[i]) * (slope - term[i]);
      }
    }
    ROW_BARRIER;
    add_product(sums, ds + row * WEIGHTS_STEP, k_tile, D, x);
  }
  dq += dq_start + b * p.dq.at[0] + h * p.dq.at[1];
  scale(sums, RR * PARTS(D), p.scale);
$unroll
  for (i32 i = 0; i < RR; ++i) {
    const i64 t = t0 + row + GAP * i;
    if (t >= p.queries) continue;
    store_row(dq + t * p.dq.at[2], p.dq.at[3], $dq_packed, sums + i * PARTS(D), D, x);
  }
}
)";

// Rows are keys here, and columns queries.
inline constexpr std::string_view kAttentionKeys = R"(
KERNEL_OF($bounds)
tessera_attention_keys(GLOBAL const $S* g, i64 g_start, GLOBAL const $S* q, i64 q_start,
                            GLOBAL const $S* k, i64 k_start, GLOBAL const $S* v, i64 v_start,
                            GLOBAL const $S* y, i64 y_start, GLOBAL const $T* lse,
                            i64 lse_start, GLOBAL const $M* mask, i64 mask_start,
                            GLOBAL const i64* lengths, i64 lengths_start,
                            GLOBAL const i64* key, i64 key_start, GLOBAL const i64* offset,
                            i64 offset_start, GLOBAL $S* dk, i64 dk_start, GLOBAL $S* dv,
                            i64 dv_start, GLOBAL const $T* terms, Attention p, i32 wanted) {
  $room
  p.options = OPTIONS;  // so that compilers see them
  SHARED_PTR Chunk* const k_tile = (SHARED_PTR Chunk*)room;   // (ROWS, D)
  SHARED_PTR Chunk* const v_tile = k_tile + ROWS * STEP(D);   // (ROWS, E)
  SHARED_PTR Chunk* const q_tile = v_tile + ROWS * STEP(E);   // (COLS, D)
  SHARED_PTR Chunk* const g_tile = q_tile + COLS * STEP(D);   // (COLS, E)
  SHARED_PTR Chunk* const weights = g_tile + COLS * STEP(E);  // (ROWS, COLS)
  SHARED_PTR $T* const shift = (SHARED_PTR $T*)(weights + ROWS * WEIGHTS_STEP);
  SHARED_PTR $T* const term = shift + COLS;
  const i32 x = LANE_X, row = FIRST_ROW(LANE_Y), team = row / TEAM_ROWS * TEAM_ROWS;
  const i64 blocks = (p.keys + ROWS - 1) / ROWS, s0 = (i64)GROUP % blocks * ROWS;
  const i64 bg = (i64)GROUP / blocks, b = bg / p.groups, group = bg % p.groups;
  const i64 shared = p.heads / p.groups, tiles = (p.queries + COLS - 1) / COLS;
  const i64 count = key_count(lengths + lengths_start, b, &p);
  const i64 seed = (OPTIONS & 8) ? key[key_start] : 0;
  const i64 first = (OPTIONS & 8) ? offset[offset_start] : 0;
  Chunk k_sums[RR * PARTS(D)], v_sums[RR * PARTS(E)];
  clear(k_sums, RR * PARTS(D));
  clear(v_sums, RR * PARTS(E));
  load_tile(k_tile, ROWS, D, $k_packed, k + k_start + b * p.k.at[0] + group * p.k.at[1], s0, count,
            p.k.at[2], p.k.at[3], 1);
  load_tile(v_tile, ROWS, E, $v_packed, v + v_start + b * p.v.at[0] + group * p.v.at[1], s0, count,
            p.v.at[2], p.v.at[3], 1);
  for (i64 turn = 0; turn < shared * tiles; ++turn) {
    const i64 h = group * shared + turn / tiles, t0 = turn % tiles * COLS;
    const i64 end = rows_end(t0, COLS, count, &p);
    if (s0 >= end) continue;  // no query sees a key: the same for all lanes
    const Scores tile = scores_of(b, h, t0, s0, ROWS, count, &p);
    const i64 at = t0 + (i32)LANE;
    $T lse_here = INFINITY, term_here = 0;  // leave no weight
    if ((i32)LANE < COLS && at < p.queries) {
      lse_here = lse[lse_start + b * p.lse.at[0] + h * p.lse.at[1] + at * p.lse.at[2]];
      term_here = terms[(b * p.heads + h) * p.queries + at];
    }
    BARRIER;
    load_tile(q_tile, COLS, D, $q_packed, q + q_start + b * p.q.at[0] + h * p.q.at[1], t0,
              p.queries, p.q.at[2], p.q.at[3], p.scale);
    load_tile(g_tile, COLS, E, $g_packed, g + g_start + b * p.g.at[0] + h * p.g.at[1], t0,
              p.queries, p.g.at[2], p.g.at[3], 1);
    if ((i32)LANE < COLS) {
      shift[LANE] = lse_here;
      term[LANE] = term_here;
    }
    BARRIER;
    if (s0 + team >= end) continue;
    $T scores[RR][RC], slopes[RR][RC];
    SHARED_PTR Chunk* const mine = weights + row * WEIGHTS_STEP;
    multiply_across(scores, k_tile + row * STEP(D), q_tile + x * STEP(D), D);
    multiply_across(slopes, v_tile + row * STEP(E), g_tile + x * STEP(E), E);
$unroll
    for (i32 j = 0; j < RC; ++j) {
      const i32 t = x + X * j;
      const $T here = shift[t], less = term[t];
$unroll
      for (i32 i = 0; i < RR; ++i) {
        const i32 s = row + GAP * i;
        const $T score = score_in(scores[i][j], t, s, &tile, mask + mask_start, &p);
        const $T weight = EXP(score - here);
        const $T left = kept_of(b, h, t0 + t, s0 + s, seed, first, &p);
        ((SHARED_PTR $T*)(mine + GAP * i * WEIGHTS_STEP))[t] = weight * left;
        slopes[i][j] = weight * (slopes[i][j] * left - less);
      }
    }
    ROW_BARRIER;
    if (wanted & 2) add_product(v_sums, mine, g_tile, E, x);
    ROW_BARRIER;
$unroll
    for (i32 i = 0; i < RR; ++i) {
$unroll
      for (i32 j = 0; j < RC; ++j) {
        ((SHARED_PTR $T*)(mine + GAP * i * WEIGHTS_STEP))[x + X * j] = slopes[i][j];
      }
    }
    ROW_BARRIER;
    if (wanted & 1) add_product(k_sums, mine, q_tile, D, x);
  }
  dk += dk_start + b * p.dk.at[0] + group * p.dk.at[1];
  dv += dv_start + b * p.dv.at[0] + group * p.dv.at[1];
$unroll
  for (i32 i = 0; i < RR; ++i) {
    const i64 s = s0 + row + GAP * i;
    if (s >= p.keys) continue;
    if (wanted & 1) {
      store_row(dk + s * p.dk.at[2], p.dk.at[3], $dk_packed, k_sums + i * PARTS(D), D, x);
    }
    if (wanted & 2) {
      store_row(dv + s * p.dv.at[2], p.dv.at[3], $dv_packed, v_sums + i * PARTS(E), E, x);
    }
  }
}
)";

}  // namespace tessera::gpu
