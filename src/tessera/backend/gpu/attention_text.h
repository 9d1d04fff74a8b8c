// The source of the attention kernels.
//
// Here a group takes a block of BQ queries and walks along the keys in tiles of BK (or, for the
// gradients of keys and values, the other way round): scores exist one tile at a time, in local
// memory. D and E are the columns of queries and values; $M is what a mask's elements are.
// kAttentionCommon serves kernels of other kinds, too.
#pragma once

#include <string_view>

namespace tessera::gpu {

inline constexpr std::string_view kAttentionCommon = R"(
#define D $depth
#define E $values
#define UNSEEN (($T)-INFINITY)

typedef struct { i64 at[4]; } Strides;
typedef struct {
  i64 batch, heads, groups, queries, keys;
  i64 options;  // base/attention_options.h
  Strides q, k, v, mask, lengths, g, y, lse, dq, dk, dv;
  $T scale, kept_scale;
  f32 keep;
} Attention;

// How many keys the queries of batch b may see.
DEVICE i64 key_count(GLOBAL const i64* lengths, i64 b, const Attention* p) {
  if (!(p->options & 4)) return p->keys;
  return clamp(lengths[b * p->lengths.at[0]], (i64)0, p->keys);
}

// One past the last key that query t may see.
DEVICE i64 key_end(i64 t, i64 count, const Attention* p) {
  return (p->options & 1) ? clamp(t + p->keys - p->queries + 1, (i64)0, count) : count;
}

DEVICE $T score_of($T dot, i64 b, i64 h, i64 t, i64 s, i64 count,
                          GLOBAL const $M* mask, const Attention* p) {
  if (t >= p->queries || s >= key_end(t, count, p)) return UNSEEN;
  if (!(p->options & 2)) return dot;
  const $M m = mask[b * p->mask.at[0] + h * p->mask.at[1] + t * p->mask.at[2] + s * p->mask.at[3]];
  return $masked;
}

// What dropout makes of weight (b, h, t, s).
DEVICE $T kept_of(i64 b, i64 h, i64 t, i64 s, i64 key, i64 offset, const Attention* p) {
  if (!(p->options & 8)) return 1;
  const i64 place = ((b * p->heads + h) * p->queries + t) * p->keys + s;
  return t_uniform(place, key, offset) < p->keep ? p->kept_scale : 0;
}
)";

inline constexpr std::string_view kAttentionTiles = R"(
#define BQ $bq
#define BK $bk
#define LANES $lanes

// Rows first … first + n of a matrix, times a factor; 0 from row `rows` on.
DEVICE void load_tile(SHARED_PTR $T* tile, i32 n, i32 columns, GLOBAL const $S* matrix,
                             i64 first, i64 rows, i64 row, i64 column, $T factor) {
  for (i32 e = (i32)LANE; e < n * columns; e += LANES) {
    const i64 i = first + e / columns;
    tile[e] = i < rows ? factor * LOAD(matrix[i * row + e % columns * column]) : 0;
  }
}

DEVICE $T dot_of(SHARED_PTR const $T* a, SHARED_PTR const $T* b, i32 n) {
  $T sum = 0;
  for (i32 i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

// Σ g · y of a query.
DEVICE $T along_of(GLOBAL const $S* g, GLOBAL const $S* y, i64 b, i64 h, i64 t,
                          const Attention* p) {
  g += b * p->g.at[0] + h * p->g.at[1] + t * p->g.at[2];
  y += b * p->y.at[0] + h * p->y.at[1] + t * p->y.at[2];
  $T sum = 0;
  for (i32 e = 0; e < E; ++e) sum += LOAD(g[e * p->g.at[3]]) * LOAD(y[e * p->y.at[3]]);
  return sum;
}
)";

inline constexpr std::string_view kAttentionForward = R"(
KERNEL_OF(LANES)
tessera_attention(GLOBAL const $S* q, i64 q_start, GLOBAL const $S* k, i64 k_start,
                       GLOBAL const $S* v, i64 v_start, GLOBAL const $M* mask, i64 mask_start,
                       GLOBAL const i64* lengths, i64 lengths_start, GLOBAL const i64* key,
                       i64 key_start, GLOBAL const i64* offset, i64 offset_start,
                       GLOBAL $S* y, i64 y_start, GLOBAL $T* lse, i64 lse_start, Attention p,
                       i32 wanted) {
  SHARED $T q_tile[BQ * D], kv_tile[BK * (D > E ? D : E)], weights[BQ * BK], sums[BQ * E];
  SHARED $T top[BQ], total[BQ], factor[BQ];
  const i32 lane = LANE;
  const i64 blocks = (p.queries + BQ - 1) / BQ, t0 = (i64)GROUP % blocks * BQ;
  const i64 bh = (i64)GROUP / blocks, b = bh / p.heads, h = bh % p.heads;
  const i64 group = h / (p.heads / p.groups);
  q += q_start + b * p.q.at[0] + h * p.q.at[1];
  k += k_start + b * p.k.at[0] + group * p.k.at[1];
  v += v_start + b * p.v.at[0] + group * p.v.at[1];
  const i64 count = key_count(lengths + lengths_start, b, &p);
  const i64 end = key_end(min(t0 + BQ, p.queries) - 1, count, &p);
  const i64 seed = (p.options & 8) ? key[key_start] : 0;
  const i64 first = (p.options & 8) ? offset[offset_start] : 0;
  load_tile(q_tile, BQ, D, q, t0, p.queries, p.q.at[2], p.q.at[3], p.scale);
  for (i32 e = lane; e < BQ * E; e += LANES) sums[e] = 0;
  for (i32 i = lane; i < BQ; i += LANES) {
    top[i] = UNSEEN;
    total[i] = 0;
  }
  for (i64 s0 = 0; s0 < end; s0 += BK) {
    load_tile(kv_tile, BK, D, k, s0, end, p.k.at[2], p.k.at[3], 1);
    BARRIER;
    for (i32 e = lane; e < BQ * BK; e += LANES) {
      const i32 i = e / BK, j = e % BK;
      const $T dot = dot_of(q_tile + i * D, kv_tile + j * D, D);
      weights[e] = score_of(dot, b, h, t0 + i, s0 + j, count, mask + mask_start, &p);
    }
    BARRIER;
    load_tile(kv_tile, BK, E, v, s0, end, p.v.at[2], p.v.at[3], 1);
    for (i32 i = lane; i < BQ; i += LANES) {
      SHARED_PTR $T* row = weights + i * BK;
      $T best = top[i];
      for (i32 j = 0; j < BK; ++j) best = row[j] > best || row[j] != row[j] ? row[j] : best;
      const $T shift = best == UNSEEN ? 0 : best;  // -inf less -inf has no value
      $T sum = 0;
      for (i32 j = 0; j < BK; ++j) {
        const $T weight = exp(row[j] - shift);
        sum += weight;
        row[j] = weight * kept_of(b, h, t0 + i, s0 + j, seed, first, &p);
      }
      factor[i] = exp(top[i] - shift);
      total[i] = total[i] * factor[i] + sum;
      top[i] = best;
    }
    BARRIER;
    for (i32 e = lane; e < BQ * E; e += LANES) {
      const i32 i = e / E, c = e % E;
      $T sum = sums[e] * factor[i];
      for (i32 j = 0; j < BK; ++j) sum += weights[i * BK + j] * kv_tile[j * E + c];
      sums[e] = sum;
    }
    BARRIER;
  }
  BARRIER;
  // A query that sees no key has y 0 and lse 0.
  y += y_start + b * p.y.at[0] + h * p.y.at[1];
  for (i32 e = lane; e < BQ * E && (wanted & 1); e += LANES) {
    const i32 i = e / E;
    if (t0 + i >= p.queries) continue;
    const $T mean = top[i] == UNSEEN ? 0 : sums[e] / total[i];
    y[(t0 + i) * p.y.at[2] + e % E * p.y.at[3]] = STORE(mean);
  }
  for (i32 i = lane; i < BQ && (wanted & 2); i += LANES) {
    if (t0 + i >= p.queries) continue;
    lse[lse_start + bh * p.queries + t0 + i] = top[i] == UNSEEN ? 0 : top[i] + log(total[i]);
  }
}
)";

// With P = exp(score - lse) and f what dropout does: ds = P · (f(g vᵀ) - Σ g · y).
inline constexpr std::string_view kAttentionQueries = R"(
KERNEL_OF(LANES)
tessera_attention_queries(GLOBAL const $S* g, i64 g_start, GLOBAL const $S* q, i64 q_start,
                               GLOBAL const $S* k, i64 k_start, GLOBAL const $S* v, i64 v_start,
                               GLOBAL const $S* y, i64 y_start, GLOBAL const $T* lse,
                               i64 lse_start, GLOBAL const $M* mask, i64 mask_start,
                               GLOBAL const i64* lengths, i64 lengths_start,
                               GLOBAL const i64* key, i64 key_start, GLOBAL const i64* offset,
                               i64 offset_start, GLOBAL $S* dq, i64 dq_start, Attention p) {
  SHARED $T q_tile[BQ * D], g_tile[BQ * E], k_tile[BK * D], v_tile[BK * E];
  SHARED $T ds[BQ * BK], sums[BQ * D], along[BQ], shift[BQ];
  const i32 lane = LANE;
  const i64 blocks = (p.queries + BQ - 1) / BQ, t0 = (i64)GROUP % blocks * BQ;
  const i64 bh = (i64)GROUP / blocks, b = bh / p.heads, h = bh % p.heads;
  const i64 group = h / (p.heads / p.groups);
  q += q_start + b * p.q.at[0] + h * p.q.at[1];
  k += k_start + b * p.k.at[0] + group * p.k.at[1];
  v += v_start + b * p.v.at[0] + group * p.v.at[1];
  const i64 count = key_count(lengths + lengths_start, b, &p);
  const i64 end = key_end(min(t0 + BQ, p.queries) - 1, count, &p);
  const i64 seed = (p.options & 8) ? key[key_start] : 0;
  const i64 first = (p.options & 8) ? offset[offset_start] : 0;
  load_tile(q_tile, BQ, D, q, t0, p.queries, p.q.at[2], p.q.at[3], p.scale);
  load_tile(g_tile, BQ, E, g + g_start + b * p.g.at[0] + h * p.g.at[1], t0, p.queries, p.g.at[2],
            p.g.at[3], 1);
  for (i32 e = lane; e < BQ * D; e += LANES) sums[e] = 0;
  for (i32 i = lane; i < BQ; i += LANES) {
    const i64 t = min(t0 + i, p.queries - 1);
    along[i] = along_of(g + g_start, y + y_start, b, h, t, &p);
    shift[i] = lse[lse_start + b * p.lse.at[0] + h * p.lse.at[1] + t * p.lse.at[2]];
  }
  for (i64 s0 = 0; s0 < end; s0 += BK) {
    load_tile(k_tile, BK, D, k, s0, end, p.k.at[2], p.k.at[3], 1);
    load_tile(v_tile, BK, E, v, s0, end, p.v.at[2], p.v.at[3], 1);
    BARRIER;
    for (i32 e = lane; e < BQ * BK; e += LANES) {
      const i32 i = e / BK, j = e % BK;
      const $T dot = dot_of(q_tile + i * D, k_tile + j * D, D);
      const $T score = score_of(dot, b, h, t0 + i, s0 + j, count, mask + mask_start, &p);
      const $T product = dot_of(g_tile + i * E, v_tile + j * E, E) *
                         kept_of(b, h, t0 + i, s0 + j, seed, first, &p);
      ds[e] = exp(score - shift[i]) * (product - along[i]);
    }
    BARRIER;
    for (i32 e = lane; e < BQ * D; e += LANES) {
      $T sum = sums[e];
      for (i32 j = 0; j < BK; ++j) sum += ds[e / D * BK + j] * k_tile[j * D + e % D];
      sums[e] = sum;
    }
    BARRIER;
  }
  BARRIER;
  dq += dq_start + b * p.dq.at[0] + h * p.dq.at[1];
  for (i32 e = lane; e < BQ * D; e += LANES) {
    if (t0 + e / D >= p.queries) continue;
    dq[(t0 + e / D) * p.dq.at[2] + e % D * p.dq.at[3]] = STORE(sums[e] * p.scale);
  }
}
)";

inline constexpr std::string_view kAttentionKeys = R"(
KERNEL_OF(LANES)
tessera_attention_keys(GLOBAL const $S* g, i64 g_start, GLOBAL const $S* q, i64 q_start,
                            GLOBAL const $S* k, i64 k_start, GLOBAL const $S* v, i64 v_start,
                            GLOBAL const $S* y, i64 y_start, GLOBAL const $T* lse,
                            i64 lse_start, GLOBAL const $M* mask, i64 mask_start,
                            GLOBAL const i64* lengths, i64 lengths_start,
                            GLOBAL const i64* key, i64 key_start, GLOBAL const i64* offset,
                            i64 offset_start, GLOBAL $S* dk, i64 dk_start, GLOBAL $S* dv,
                            i64 dv_start, Attention p, i32 wanted) {
  SHARED $T q_tile[BQ * D], g_tile[BQ * E], k_tile[BK * D], v_tile[BK * E];
  SHARED $T ds[BQ * BK], kept[BQ * BK], k_sums[BK * D], v_sums[BK * E], along[BQ], shift[BQ];
  const i32 lane = LANE;
  const i64 blocks = (p.keys + BK - 1) / BK, s0 = (i64)GROUP % blocks * BK;
  const i64 bg = (i64)GROUP / blocks, b = bg / p.groups, group = bg % p.groups;
  const i64 shared = p.heads / p.groups;
  const i64 count = key_count(lengths + lengths_start, b, &p);
  const i64 seed = (p.options & 8) ? key[key_start] : 0;
  const i64 first = (p.options & 8) ? offset[offset_start] : 0;
  load_tile(k_tile, BK, D, k + k_start + b * p.k.at[0] + group * p.k.at[1], s0, count, p.k.at[2],
            p.k.at[3], 1);
  load_tile(v_tile, BK, E, v + v_start + b * p.v.at[0] + group * p.v.at[1], s0, count, p.v.at[2],
            p.v.at[3], 1);
  for (i32 e = lane; e < BK * D; e += LANES) k_sums[e] = 0;
  for (i32 e = lane; e < BK * E; e += LANES) v_sums[e] = 0;
  const i64 tiles = (p.queries + BQ - 1) / BQ;
  for (i64 turn = 0; turn < shared * tiles; ++turn) {
    const i64 h = group * shared + turn / tiles, t0 = turn % tiles * BQ;
    // No query of the tile sees the first key of the block: the same for all lanes.
    if (s0 >= key_end(min(t0 + BQ, p.queries) - 1, count, &p)) continue;
    load_tile(q_tile, BQ, D, q + q_start + b * p.q.at[0] + h * p.q.at[1], t0, p.queries, p.q.at[2],
              p.q.at[3], p.scale);
    load_tile(g_tile, BQ, E, g + g_start + b * p.g.at[0] + h * p.g.at[1], t0, p.queries, p.g.at[2],
              p.g.at[3], 1);
    for (i32 i = lane; i < BQ; i += LANES) {
      const i64 t = min(t0 + i, p.queries - 1);
      along[i] = along_of(g + g_start, y + y_start, b, h, t, &p);
      shift[i] = lse[lse_start + b * p.lse.at[0] + h * p.lse.at[1] + t * p.lse.at[2]];
    }
    BARRIER;
    for (i32 e = lane; e < BQ * BK; e += LANES) {
      const i32 i = e / BK, j = e % BK;
      const $T dot = dot_of(q_tile + i * D, k_tile + j * D, D);
      const $T score = score_of(dot, b, h, t0 + i, s0 + j, count, mask + mask_start, &p);
      const $T weight = exp(score - shift[i]);
      const $T left = kept_of(b, h, t0 + i, s0 + j, seed, first, &p);
      kept[e] = weight * left;
      ds[e] = weight * (dot_of(g_tile + i * E, v_tile + j * E, E) * left - along[i]);
    }
    BARRIER;
    for (i32 e = lane; e < BK * D; e += LANES) {
      $T sum = k_sums[e];
      for (i32 i = 0; i < BQ; ++i) sum += ds[i * BK + e / D] * q_tile[i * D + e % D];
      k_sums[e] = sum;
    }
    for (i32 e = lane; e < BK * E; e += LANES) {
      $T sum = v_sums[e];
      for (i32 i = 0; i < BQ; ++i) sum += kept[i * BK + e / E] * g_tile[i * E + e % E];
      v_sums[e] = sum;
    }
    BARRIER;
  }
  BARRIER;
  dk += dk_start + b * p.dk.at[0] + group * p.dk.at[1];
  for (i32 e = lane; e < BK * D && (wanted & 1); e += LANES) {
    if (s0 + e / D >= p.keys) continue;
    dk[(s0 + e / D) * p.dk.at[2] + e % D * p.dk.at[3]] = STORE(k_sums[e]);
  }
  dv += dv_start + b * p.dv.at[0] + group * p.dv.at[1];
  for (i32 e = lane; e < BK * E && (wanted & 2); e += LANES) {
    if (s0 + e / E >= p.keys) continue;
    dv[(s0 + e / E) * p.dv.at[2] + e % E * p.dv.at[3]] = STORE(v_sums[e]);
  }
}
)";

}  // namespace tessera::gpu
