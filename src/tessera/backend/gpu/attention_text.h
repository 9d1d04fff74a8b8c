// What the sources of the attention kernels share; attention_kernels_text.h has the kernels.
//
// A group has a tile of ROWS queries and walks along the keys in tiles of COLS; for the gradients
// of keys and values it is the other way round. D and E are the columns of queries and values; $M
// is what a mask's elements are. kAttentionCommon serves kernels of other kinds, too.
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

// Tiles in local memory are rows of chunks of 16 bytes. Of a tile of scores a lane holds RR rows,
// GAP apart, and RC columns, X apart; of a tile of results the same rows, and chunks X apart.
inline constexpr std::string_view kAttentionTiles = R"(
#define X $across  // lanes side by side, and below each other
#define Y $down
#define RR $rows
#define RC $columns
#define W $width  // numbers of a chunk
#define OPTIONS $options
#define ROWS (Y * RR)
#define COLS (X * RC)
#define LANES (X * Y)
#define CHUNKS(n) (((n) + W - 1) / W)
#define STEP(n) (CHUNKS(n) | 1)  // odd: rows next to each other begin in different banks
#define PARTS(n) ((CHUNKS(n) + X - 1) / X)  // chunks of a result's row that a lane holds
#define WEIGHTS_STEP (CHUNKS(COLS) + 2)
#define EXP(x) $exp(x)

$chunk
// A warp has 4 rows of 8 lanes. Of the lanes next to each other in it one shares the row, one the
// column, so that pairs of them ask for the same chunk.
#if X % 8 == 0 && Y % 4 == 0
#define LANE_X \
  ((i32)LANE / 32 % (X / 8) * 8 + (i32)((LANE & 1) | (LANE >> 1 & 2) | (LANE >> 2 & 4)))
#define LANE_Y ((i32)LANE / 32 / (X / 8) * 4 + (i32)((LANE >> 1 & 1) | (LANE >> 2 & 2)))
#define GAP 4
#else
#define LANE_X ((i32)LANE % X)
#define LANE_Y ((i32)LANE / X)
#define GAP Y
#endif
// Lanes that wait for each other alone, by ROW_BARRIER: a warp that holds whole rows, or all.
#if defined(WARP_BARRIER) && X == 8 && Y % 4 == 0
#define TEAM_ROWS (GAP * RR)
#define ROW_BARRIER WARP_BARRIER
#else
#define TEAM_ROWS ROWS
#define ROW_BARRIER BARRIER
#endif
#define FIRST_ROW(y) ((y) / GAP * (GAP * RR) + (y) % GAP)

// How many lanes load a row of so many chunks.
#define ABREAST(n) ((n) >= 16 && LANES >= 16 ? 16 : (n) >= 4 && LANES >= 4 ? 4 : 1)

// Rows first … first + n of a matrix, times a factor; 0 from row `rows` on. `packed`: chunks lie in
// memory as they are.
DEVICE void load_tile(SHARED_PTR Chunk* tile, i32 n, i32 columns, bool packed,
                      GLOBAL const $S* matrix, i64 first, i64 rows, i64 step, i64 column,
                      $T factor) {
  const i32 abreast = ABREAST(CHUNKS(columns)), below = LANES / abreast;
  const i32 inside = (i32)clamp(rows - first, (i64)0, (i64)n);
  const i32 row0 = (i32)LANE / abreast;
  for (i32 c0 = 0; c0 < CHUNKS(columns); c0 += abreast) {
    const i32 c = c0 + (i32)LANE % abreast;
    const bool is_column = CHUNKS(columns) % abreast == 0 || c < CHUNKS(columns);
    GLOBAL const $S* from = matrix + (first + row0) * step + c * W * column;
    SHARED_PTR Chunk* to = tile + row0 * STEP(columns) + c;
#pragma unroll 8
    for (i32 done = 0; done < n; done += below) {
      Chunk chunk;
$unroll
      for (i32 i = 0; i < W; ++i) chunk.v[i] = 0;
      if (is_column && row0 + done < inside) {
        if (packed) {
          chunk = *(GLOBAL const Chunk*)from;
        } else {
$unroll
          for (i32 i = 0; i < W; ++i) {
            if (c * W + i < columns) chunk.v[i] = LOAD(from[i * column]);
          }
        }
      }
$unroll
      for (i32 i = 0; i < W; ++i) chunk.v[i] *= factor;
      if (is_column && (n % below == 0 || row0 + done < n)) *to = chunk;
      from += below * step;
      to += below * STEP(columns);
    }
  }
}

// d = a bᵀ, (rows, n) and (columns, n); a and b begin at the lane's first.
DEVICE void multiply_across($T d[RR][RC], SHARED_PTR const Chunk* a, SHARED_PTR const Chunk* b,
                            i32 n) {
$unroll
  for (i32 i = 0; i < RR; ++i) {
$unroll
    for (i32 j = 0; j < RC; ++j) d[i][j] = 0;
  }
#pragma unroll $along
  for (i32 c = 0; c < CHUNKS(n); ++c) {
    Chunk right[RC];
$unroll
    for (i32 j = 0; j < RC; ++j) right[j] = b[j * X * STEP(n) + c];
$unroll
    for (i32 i = 0; i < RR; ++i) {
      const Chunk left = a[i * GAP * STEP(n) + c];
$unroll
      for (i32 j = 0; j < RC; ++j) {
$unroll
        for (i32 u = 0; u < W; ++u) d[i][j] += left.v[u] * right[j].v[u];
      }
    }
  }
}

// d += weights b, (rows, COLS) and (COLS, n); the weights begin at the lane's first row.
DEVICE void add_product(Chunk* d, SHARED_PTR const Chunk* weights, SHARED_PTR const Chunk* b,
                        i32 n, i32 x) {
#pragma unroll $along
  for (i32 c = 0; c < CHUNKS(COLS); ++c) {
    Chunk left[RR];
$unroll
    for (i32 i = 0; i < RR; ++i) left[i] = weights[i * GAP * WEIGHTS_STEP + c];
$unroll
    for (i32 u = 0; u < (COLS < W ? COLS : W); ++u) {
$unroll
      for (i32 j = 0; j < PARTS(n); ++j) {
        // Lanes beyond the last chunk take that one, and store nothing.
        const i32 at = CHUNKS(n) % X == 0 ? x + j * X : min(x + j * X, CHUNKS(n) - 1);
        const Chunk right = b[(c * W + u) * STEP(n) + at];
$unroll
        for (i32 i = 0; i < RR; ++i) {
$unroll
          for (i32 e = 0; e < W; ++e) d[i * PARTS(n) + j].v[e] += left[i].v[u] * right.v[e];
        }
      }
    }
  }
}

// One past the last key that any of n queries from t on may see; 0 where there is none.
DEVICE i64 rows_end(i64 t, i64 n, i64 count, const Attention* p) {
  return t < p->queries ? key_end(min(t + n, p->queries) - 1, count, p) : 0;
}

// A tile of scores, and what is seen of it: of query t0 + t the keys before s0 + diagonal + t, and
// before s0 + left.
typedef struct {
  i64 b, h, t0, s0;
  i32 diagonal, left;
  bool is_clear;  // all of n keys, and no mask changes a score
} Scores;

DEVICE Scores scores_of(i64 b, i64 h, i64 t0, i64 s0, i64 n, i64 count, const Attention* p) {
  const i64 far = 1 << 30, diagonal = t0 + p->keys - p->queries + 1 - s0;
  Scores tile;
  tile.b = b;
  tile.h = h;
  tile.t0 = t0;
  tile.s0 = s0;
  tile.diagonal = (i32)((OPTIONS & 1) ? clamp(diagonal, -far, far) : far);
  tile.left = (i32)min(count - s0, far);
  tile.is_clear = !(OPTIONS & 2) && tile.diagonal >= n && tile.left >= n;
  return tile;
}

// Of query t0 + t and key s0 + s.
DEVICE $T score_in($T dot, i32 t, i32 s, const Scores* tile, GLOBAL const $M* mask,
                   const Attention* p) {
  if (tile->is_clear) return dot;
  if (s >= min(tile->diagonal + t, tile->left)) return UNSEEN;
#if OPTIONS & 2
  return score_of(dot, tile->b, tile->h, tile->t0 + t, tile->s0 + s, p->keys, mask, p);
#else
  return dot;
#endif
}

// Of what X lanes left for a row.
DEVICE $T greatest(SHARED_PTR const Chunk* row) {
  $T best = UNSEEN;
$unroll
  for (i32 c = 0; c < CHUNKS(X); ++c) {
    const Chunk part = row[c];
$unroll
    for (i32 i = 0; i < (X < W ? X : W); ++i) best = fmax(best, part.v[i]);
  }
  return best;
}
DEVICE $T sum_of(SHARED_PTR const Chunk* row) {
  $T sum = 0;
  for (i32 i = 0; i < X; ++i) sum += ((SHARED_PTR const $T*)row)[i];
  return sum;
}

DEVICE void clear(Chunk* d, i32 count) {
$unroll
  for (i32 i = 0; i < count; ++i) {
$unroll
    for (i32 e = 0; e < W; ++e) d[i].v[e] = 0;
  }
}

DEVICE void scale(Chunk* d, i32 count, $T factor) {
$unroll
  for (i32 i = 0; i < count; ++i) {
$unroll
    for (i32 e = 0; e < W; ++e) d[i].v[e] *= factor;
  }
}

// A lane's chunks of a result's row, of n columns.
DEVICE void store_row(GLOBAL $S* to, i64 column, bool packed, const Chunk* d, i32 n, i32 x) {
$unroll
  for (i32 j = 0; j < PARTS(n); ++j) {
    const i32 at = (x + j * X) * W;
    if (packed) {
      if (at < n) *(GLOBAL Chunk*)(to + at) = d[j];
      continue;
    }
$unroll
    for (i32 e = 0; e < W; ++e) {
      if (at + e < n) to[(at + e) * column] = STORE(d[j].v[e]);
    }
  }
}
)";

}  // namespace tessera::gpu
