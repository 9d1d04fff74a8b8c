// The text of long_rows.cpp: what both kernels begin with, what each does with a row, the entry.
#pragma once

#include <string_view>

namespace tessera::cuda {

// The copy of a piece is one instruction: it takes whole units, and needs no lane until it is done.
inline constexpr std::string_view kRowsBegin = R"(
#define WARP 32
#define LANES $lanes
#define WARPS (LANES / WARP)
#define GROUPS $groups
#define COLUMNS $columns
#define PIECE $piece
#define VECTOR $vector
#define HALVES $halves
// Columns behind a whole unit that are read beside it.
#define BEHIND $behind
struct alignas(16) Unit { $S v[VECTOR]; };
struct alignas(8) Pair { f32 a, b; };
struct Room {
  f32 folds[2][WARPS];
  Pair pairs[2][GROUPS];
};
struct Task {
  const $S *x, *gamma, *beta;
  $S* y;
  f32 *mean, *rstd;
  i64 rows;
  f32 epsilon;
};

#ifdef __CUDA_ARCH__
DEVICE u32 place(const void* at) { return (u32)__cvta_generic_to_shared(at); }
DEVICE void prepare(u64* copied) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(place(copied)) : "memory");
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
DEVICE void start_copy(Unit* to, const Unit* from, i32 units, u64* copied) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
               ::"r"(place(copied)), "r"(units * 16) : "memory");
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
               "[%0], [%1], %2, [%3];"
               ::"r"(place(to)), "l"(from), "r"(units * 16), "r"(place(copied)) : "memory");
}
DEVICE void await_copy(u64* copied, i32 turn) {
  u32 is_done = 0;
  while (is_done == 0) {
    asm volatile("{\n.reg .pred p;\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                 "selp.u32 %0, 1, 0, p;\n}"
                 : "=r"(is_done) : "r"(place(copied)), "r"(turn) : "memory");
  }
}
// What lanes wrote comes before what the next copy writes.
DEVICE void give_up_piece() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
// Spelled out, for the compiler makes several accesses of an assignment.
DEVICE void store(Unit* to, const u32* words) {
  asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};"
               ::"l"(to), "r"(words[0]), "r"(words[1]), "r"(words[2]), "r"(words[3]));
}
DEVICE void load(u32* words, const Unit* from) {
  asm("ld.global.nc.v4.b32 {%0, %1, %2, %3}, [%4];"
      : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3]) : "l"(from));
}
#else
DEVICE void prepare(u64*) {}
DEVICE void start_copy(Unit* to, const Unit* from, i32 units, u64*) {
  for (i32 i = 0; i < units; ++i) to[i] = from[i];
}
DEVICE void await_copy(u64*, i32) { BARRIER; }
DEVICE void give_up_piece() {}
DEVICE void store(Unit* to, const u32* words) { memcpy(to, words, sizeof(Unit)); }
DEVICE void load(u32* words, const Unit* from) { memcpy(words, from, sizeof(Unit)); }
#endif

// The columns of a group, in units of memory: whole ones in [first, last), and single elements in
// [low, high) before and behind them, of which a lane has at most one.
struct Piece {
  i32 low, high, first, last, single;
};

DEVICE i32 apart(const $S* at) { return (i32)((u64)at % sizeof(Unit) / sizeof($S)); }

DEVICE Piece piece_at(const $S* x, i32 count) {
  Piece piece;
  piece.low = apart(x);
  piece.high = piece.low + count;
  piece.first = (piece.low + VECTOR - 1) / VECTOR;
  piece.last = (piece.high - BEHIND) / VECTOR;
  const i32 before = piece.low + (i32)LANE;
  const i32 head = piece.first * VECTOR - piece.low;
  piece.single = before < piece.first * VECTOR ? before : piece.last * VECTOR + (i32)LANE - head;
  return piece;
}

DEVICE void spread(const Unit& unit, f32* values) {
#pragma unroll
  for (i32 i = 0; i < VECTOR; ++i) values[i] = LOAD(unit.v[i]);
}

DEVICE void give(Unit* to, const f32* values) {
  u32 words[4];
#pragma unroll
  for (i32 i = 0; i < 4; ++i) {
#if HALVES
    words[i] = (u32)STORE(values[2 * i]) | (u32)STORE(values[2 * i + 1]) << 16;
#else
    words[i] = __float_as_uint(values[i]);
#endif
  }
  store(to, words);
}

// Gives each element to `take`; keeps what becomes of it if told to.
template <bool keeps, class Take>
DEVICE void each(Unit* kept, const Piece& piece, const Take& take) {
#pragma unroll 4
  for (i32 u = piece.first + (i32)LANE; u < piece.last; u += LANES) {
    Unit unit = kept[u];
#pragma unroll
    for (i32 i = 0; i < VECTOR; ++i) {
      f32 value = LOAD(unit.v[i]);
      take(value);
      if (keeps) unit.v[i] = STORE(value);
    }
    if (keeps) kept[u] = unit;
  }
  if (piece.single < piece.high) {
    $S* const at = kept[0].v + piece.single;
    f32 value = LOAD(*at);
    take(value);
    if (keeps) *at = STORE(value);
  }
}

// Writes what `of_unit` and `of_single` make of the elements; y[i] takes that of kept[0].v[i].
// Together: y begins as x does.
template <bool together, class OfUnit, class OfSingle>
DEVICE void write($S* y, const Unit* kept, const Piece& piece, const OfUnit& of_unit,
                  const OfSingle& of_single) {
#pragma unroll 2
  for (i32 u = piece.first + (i32)LANE; u < piece.last; u += LANES) {
    f32 values[VECTOR];
    spread(kept[u], values);
    of_unit(values, u);
    if (together) {
      give((Unit*)y + u, values);
    } else {
      for (i32 i = 0; i < VECTOR; ++i) y[u * VECTOR + i] = STORE(values[i]);
    }
  }
  if (piece.single < piece.high) {
    y[piece.single] = STORE(of_single(LOAD(kept[0].v[piece.single]), piece.single));
  }
}

// Over the group, in every lane: the sum, or the greatest. Two folds in a row need two rooms.
template <bool is_sum>
DEVICE f32 fold(f32 value, f32* room) {
  const auto join = [&](i32 step) {
    const f32 other = __shfl_xor_sync(0xffffffffu, value, step, WARP);
    value = is_sum ? value + other : fmax(value, other);
  };
  for (i32 step = WARP / 2; step > 0; step /= 2) join(step);
  if (LANE % WARP == 0) room[LANE / WARP] = value;
  BARRIER;
  value = room[LANE % WARPS];
  for (i32 step = WARPS / 2; step > 0; step /= 2) join(step);
  return value;
}

DEVICE void meet() {
#if GROUPS > 1
  t_arrive();
  t_await();
#else
  BARRIER;
#endif
}

// Has every group of the cluster know what each found.
DEVICE void exchange(Pair* pairs, i32 rank, f32 a, f32 b) {
  if (LANE < GROUPS) *(Pair*)t_of_group(pairs + rank, (i32)LANE) = Pair{a, b};
  meet();
}
)";

// A piece of -inf alone is shifted by nothing, and has a share of 0 where another is greater.
inline constexpr std::string_view kSoftmaxOfRow = R"(
#if HALVES
#define EXP(x) t_near_exp(x)
#else
#define EXP(x) exp(x)
#endif
#define KEEPS (HALVES == 0)

DEVICE void work(const Task& task, Unit* kept, const Piece& piece, i64 row, i32 rank, Room& room,
                 i32 turn) {
  f32 greatest = -INFINITY;
  each<false>(kept, piece, [&](f32 x) { greatest = fmax(greatest, x); });
  greatest = fold<false>(greatest, room.folds[0]);
  const f32 shift = greatest == -INFINITY ? 0 : greatest;
  f32 total = 0;
  each<KEEPS>(kept, piece, [&](f32& x) {
    x = EXP(x - shift);
    total += x;
  });
  total = fold<true>(total, room.folds[1]);
  f32 factor = 1;
#if GROUPS > 1
  const Pair* const pairs = room.pairs[turn];
  exchange(room.pairs[turn], rank, greatest, total);
  f32 top = -INFINITY;
  for (i32 i = 0; i < GROUPS; ++i) top = fmax(top, pairs[i].a);
  total = 0;
  for (i32 i = 0; i < GROUPS; ++i) total += pairs[i].b * exp(pairs[i].a - top);
  factor = exp(greatest - top);
#endif
  factor /= total;
  const auto share = [&](f32 x, i32) { return (KEEPS ? x : EXP(x - shift)) * factor; };
  const auto shares = [&](f32* values, i32 u) {
#pragma unroll
    for (i32 i = 0; i < VECTOR; ++i) values[i] = share(values[i], u);
  };
  $S* const y = task.y + row * COLUMNS + rank * PIECE - piece.low;
  if (apart(y) == 0) {
    write<true>(y, kept, piece, shares, share);
  } else {
    write<false>(y, kept, piece, shares, share);
  }
}
)";

// Statistics of pieces are joined as Chan, Golub and LeVeque do. Weights begin elsewhere than rows:
// a lane takes two neighbouring units of them, both of which hold some that it asks for, and the
// part in between (the last columns are single, so that it is not beyond the weights); where the
// two weights begin differently, or y otherwise than x, all is single.
inline constexpr std::string_view kLayerNormOfRow = R"(
#define KEEPS false

template <i32 skipped>
DEVICE void take_weights(const $S* weights, i32 u, f32* values) {
  if (skipped < 0) {
    for (i32 i = 0; i < VECTOR; ++i) values[i] = LOAD(weights[u * VECTOR + i]);
    return;
  }
  const Unit* const units = (const Unit*)(weights - skipped) + u;
  u32 words[8];
  load(words, units);
  if (skipped > 0) load(words + 4, units + 1);
#pragma unroll
  for (i32 i = 0; i < VECTOR; ++i) {
    const i32 at = i + skipped;
#if HALVES
    values[i] = LOAD((u16)(words[at / 2] >> at % 2 * 16));
#else
    values[i] = __uint_as_float(words[at]);
#endif
  }
}

// y is written in the order of x; gamma[i] and beta[i] go with kept[0].v[i].
template <i32 skipped>
DEVICE void norm($S* y, const Unit* kept, const Piece& piece, const $S* gamma, const $S* beta,
                 f32 mean, f32 rstd) {
  write<(skipped >= 0)>(
      y, kept, piece,
      [&](f32* values, i32 u) {
        f32 scale[VECTOR], bias[VECTOR];
        take_weights<skipped>(gamma, u, scale);
        take_weights<skipped>(beta, u, bias);
#pragma unroll
        for (i32 i = 0; i < VECTOR; ++i) {
          values[i] = (values[i] - mean) * rstd * scale[i] + bias[i];
        }
      },
      [&](f32 x, i32 i) { return (x - mean) * rstd * LOAD(gamma[i]) + LOAD(beta[i]); });
}

DEVICE i32 columns_of(i32 rank) { return min(PIECE, COLUMNS - rank * PIECE); }

DEVICE void work(const Task& task, Unit* kept, const Piece& piece, i64 row, i32 rank, Room& room,
                 i32 turn) {
  f32 sum = 0, squares = 0;
  each<false>(kept, piece, [&](f32 x) { sum += x; });
  sum = fold<true>(sum, room.folds[0]);
  f32 mean = sum / (f32)columns_of(rank);
  each<false>(kept, piece, [&](f32 x) { squares += (x - mean) * (x - mean); });
  squares = fold<true>(squares, room.folds[1]);
#if GROUPS > 1
  const Pair* const pairs = room.pairs[turn];
  exchange(room.pairs[turn], rank, sum, squares);
  sum = squares = 0;
  for (i32 i = 0; i < GROUPS; ++i) sum += pairs[i].a;
  mean = sum / COLUMNS;
  for (i32 i = 0; i < GROUPS; ++i) {
    const f32 off = pairs[i].a / (f32)columns_of(i) - mean;
    squares += pairs[i].b + off * off * (f32)columns_of(i);
  }
#endif
  const f32 rstd = 1 / sqrt(squares / COLUMNS + task.epsilon);
  if (LANE == 0 && rank == 0) {
    if (task.mean != nullptr) task.mean[row] = mean;
    if (task.rstd != nullptr) task.rstd[row] = rstd;
  }
  if (task.y == nullptr) return;

  const i32 begin = rank * PIECE - piece.low;
  $S* const y = task.y + row * COLUMNS + begin;
  const $S *const gamma = task.gamma + begin, *const beta = task.beta + begin;
  // A switch, so that which elements are taken is known in each case.
#define CASE(n) case n: return norm<n>(y, kept, piece, gamma, beta, mean, rstd);
  switch (apart(gamma) == apart(beta) && apart(y) == 0 ? apart(gamma) : -1) {
    CASE(0) CASE(1) CASE(2) CASE(3)
#if HALVES
    CASE(4) CASE(5) CASE(6) CASE(7)
#endif
    default: return norm<-1>(y, kept, piece, gamma, beta, mean, rstd);
  }
}
)";

// A unit that holds an element of a row may be read to its end: memory is given in more than units.
inline constexpr std::string_view kRowsEntry = R"(
KERNEL_OF(LANES, $at_once) $cluster
tessera_long_rows(const Task task) {
  extern __shared__ Unit kept[];
  SHARED Room room;
  SHARED u64 copied;
  const i32 rank = GROUP % GROUPS, count = min(PIECE, COLUMNS - rank * PIECE);
  const i64 step = gridDim.x / GROUPS;
  const $S* x = task.x + (i64)(GROUP / GROUPS) * COLUMNS + rank * PIECE;
  Piece piece = piece_at(x, count);
  const auto start = [&] {
    const i32 units = (piece.high + VECTOR - 1) / VECTOR;
    if (LANE == 0) start_copy(kept, (const Unit*)(x - piece.low), units, &copied);
  };
  if (LANE == 0) prepare(&copied);
  meet();
  start();
  i32 turn = 0;
  for (i64 row = GROUP / GROUPS; row < task.rows; row += step) {
    await_copy(&copied, turn);
    work(task, kept, piece, row, rank, room, turn);
    if (KEEPS) give_up_piece();
    BARRIER;
    turn ^= 1;
    x += step * COLUMNS;
    piece = piece_at(x, count);
    if (row + step < task.rows) start();
  }
}
)";

}  // namespace tessera::cuda
