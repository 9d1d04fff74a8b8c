// The innermost loops, one table per instruction set. Plain pointers and counts only: these files
// are compiled several times with different instruction sets, so nothing of the standard library
// that the linker could merge may appear in them (see simd/loops.cpp).
#pragma once

#include <cstdint>

#include "tessera/base/scalar_op.h"

namespace tessera::cpu {

// d[i] = op(a[i], b[i], c[i]) for i in [0, n). Where bit k of `scalars` is set, operand k is a
// single value. d overlaps no operand.
using ScalarLoop = void (*)(int64_t n, void* d, const void* a, const void* b, const void* c,
                            unsigned scalars);

// d[i] = a[i] converted.
using CastLoop = void (*)(int64_t n, void* d, const void* a);

// What a link of a chain does with the value v and its operand b.
enum class LinkCode : uint8_t {
  add,
  sub,       // v - b
  sub_from,  // b - v
  mul,
  div,       // v / b
  div_into,  // b / v
  max,       // maximum(v, b), whose operands NaN and 0 tell apart
  max_from,  // maximum(b, v)
  min,
  min_from,
  neg,
  square,
  sqrt,
  call,          // loop(v), loop(v, b)
  call_flipped,  // loop(b, v)
  with_itself,   // loop(v, v)
  round,         // cast(v)
};

struct Link {  // nothing is initialised: there are many, and few are used
  LinkCode code;
  bool scalar;  // the operand is a single value
  bool operand_stays, keep_stays;
  const void* operand;  // null where there is none
  void* keep;           // null, or where v goes after this link, beside being passed on
  ScalarLoop loop;
  CastLoop cast;
};

// Scalar functions of one floating type, each applied to the result of the one before: v starts as
// from[i], passes through the links, and becomes to[i]. `to` may be an operand's memory; what a
// link keeps may be the operand of a later one, and overlaps nothing else.
//
// Chains run block by block, and what one writes may be an operand of a later one. Memory that
// stays holds kMostBlock values, and every block begins at its start.
inline constexpr int64_t kMostBlock = 128;
struct Chain {
  const void* from;
  void* to;
  bool from_stays, to_stays;
  const Link* links;
  int count;
  bool streams;  // write past the caches; `to` is then aligned to 64, and stream_fence follows
  // Memory that is needed soon, as much of each as the chain's own: brought near while it computes.
  static constexpr int kMostAhead = 4;
  const char* ahead[kMostAhead];
  int ahead_count;
};
using ChainLoop = void (*)(int64_t n, const Chain* chains, int count);

// d[i * d0 + j * d1] = s[i * s0 + j * s1] for i in [0, n0), j in [0, n1); strides in elements.
struct Block {
  int64_t n0, n1, d0, d1, s0, s1;
};
using MoveLoop = void (*)(void* d, const void* s, const Block& block);

// d[i] = s[i * stride + index[i] * index_stride].
using GatherLoop = void (*)(int64_t n, void* d, const void* s, int64_t stride, const int64_t* index,
                            int64_t index_stride);

// A tile of outer x inner values, stored with the inner (rows) or the outer (columns) index
// fastest, folded into value[outer]. argmax also keeps where the value was found, counted from
// `base`.
struct Fold {
  int64_t outer, inner;
  bool inner_fast;
  int64_t base;
};
using FoldLoop = void (*)(void* value, int64_t* where, const void* a, const Fold& fold);

// The sums of a · b, rows only.
using DotLoop = void (*)(void* value, const void* a, const void* b, const Fold& fold);

// value[i] = op(value[i], part[i]), part coming later in the domain.
using CombineLoop = void (*)(int64_t n, void* value, int64_t* where, const void* part,
                             const int64_t* part_where);

// Rows of a named kernel, one behind the other; n elements each. The types are float or double
// throughout. `streams`: results go past the caches, every row of them aligned to 64; stream_fence
// follows.
struct RowLoops {
  // `room`: null, or room for two rows; the results are then streamed.
  void (*softmax)(int64_t rows, int64_t n, void* y, const void* x, void* room);
  // Writes y, and of each row its mean and 1 / sqrt(variance + epsilon) where they have an address.
  void (*layer_norm)(int64_t rows, int64_t n, void* y, void* mean, void* rstd, const void* x,
                     const void* gamma, const void* beta, double epsilon, bool streams);
  // One row. Writes dx and adds to dgamma and dbeta.
  void (*layer_norm_backward)(int64_t n, void* dx, void* dgamma, void* dbeta, const void* g,
                              const void* x, const void* gamma, const void* mean, const void* rstd,
                              bool streams);
};

// A block of a product, changed in place: `rows` of c, c_step apart. Nothing overlaps.
struct Finish {
  int64_t rows, columns;
  void* c;
  int64_t c_step;
  const void* bias;  // (columns)
  void* sum;         // null, or rows
  int64_t sum_step;
  bool streams;   // the sum past the caches
  const void* x;  // rows
  int64_t x_step;
  void* sums;  // null, or (columns)
};
using FinishLoop = void (*)(const Finish&);

struct FinishLoops {
  // c + bias, kept in `sum`, or its gelu_tanh or relu: by attrs.axis of the kernel "linear".
  FinishLoop linear[3];
  FinishLoop slope;  // c · gelu_tanh'(x), and the sums of its columns
};

// How a value in memory becomes one in a register and back.
enum class Storage : uint8_t { bytes1, bytes2, bytes4, bytes8, f16, bf16, count };
inline constexpr int kStorageCount = static_cast<int>(Storage::count);

inline constexpr int kReduceCount = 5;  // rows of ReduceOp

struct LoopTable {
  ScalarLoop scalar[kScalarOpCount][kDTypeCount];  // by the type of the operands
  CastLoop cast[kDTypeCount][kDTypeCount];         // [from][to], compute types
  CastLoop round_f16, round_bf16;                  // f32 -> f32, rounded to the half type
  ChainLoop chain_f32, chain_f64;
  void (*stream_fence)();         // orders what chains streamed before what follows
  MoveLoop load[kStorageCount];   // memory -> register (halves become f32)
  MoveLoop store[kStorageCount];  // register -> memory
  GatherLoop gather[kStorageCount];
  FoldLoop fold[kReduceCount][kDTypeCount];
  CombineLoop combine[kReduceCount][kDTypeCount];
  DotLoop dot_f32, dot_f64;
  RowLoops rows_f32, rows_f64;
  FinishLoops finish_f32, finish_f64;

  // d[i * d0 + j] = start + i * s0 + j * s1
  void (*iota)(int64_t* d, int64_t n0, int64_t n1, int64_t d0, int64_t start, int64_t s0,
               int64_t s1);
  // The first position whose index lies outside [0, limit), or n.
  int64_t (*find_outside)(int64_t n, const int64_t* index, int64_t limit);
};

}  // namespace tessera::cpu
