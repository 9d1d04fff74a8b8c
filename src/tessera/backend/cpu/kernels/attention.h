// What the two kernels of attention share: the call in words, and operands as rows of T.
#pragma once

#include <algorithm>
#include <span>

#include "tessera/backend/cpu/isa.h"
#include "tessera/backend/cpu/kernels/ahead.h"
#include "tessera/backend/cpu/kernels/named_kernel.h"

namespace tessera::cpu {

// Checked against kernel_call.h when made. q, k and v start at operand `first`, what the options
// name at `rest`.
struct AttentionCall {
  AttentionCall(const KernelCall& call, int first, int rest);

  KernelCall call;
  int q, k, v;
  int mask = -1, lengths = -1, key = -1;  // operands; -1: none. The offset follows the key
  int outputs;                            // the first one's operand
  DType dtype;
  int64_t batch, heads, groups, queries, keys, depth, values;
  bool causal;

  int64_t heads_per_group() const { return heads / groups; }
  int64_t stride(int operand, int axis) const {
    return call.operands[size_t(operand)].view.strides[axis];
  }
  // Query t sees keys up to t + shift.
  int64_t shift() const { return keys - queries; }
};

// A call at its addresses.
struct AttentionRun {
  AttentionRun(const AttentionCall& c, std::span<char* const> at_) : call(c), at(at_) {}

  const AttentionCall& call;
  std::span<char* const> at;

  // Element (i, j, 0, 0) of an operand; null where it has no buffer.
  char* matrix(int operand, int64_t i, int64_t j) const {
    const OperandView& o = call.call.operands[size_t(operand)];
    if (at[size_t(operand)] == nullptr) return nullptr;
    return at[size_t(operand)] +
           (o.view.offset + i * o.view.strides[0] + j * o.view.strides[1]) * size_of(o.dtype);
  }
  int64_t scalar(int operand) const;  // a 0-d i64
  // How many keys of a sequence can be seen at all.
  int64_t key_count(int64_t batch) const;
};

// Fetched ahead is what a task of at most so many bytes reads: more would not stay in the
// second-level cache.
inline constexpr int64_t kMostAhead = int64_t(512) << 10;

// Rows of T: where an operand's lie, or copies.
template <class T>
struct Rows {
  const T* at;
  int64_t stride;
};

// The loops for a call's types. T is the compute type.
template <class T>
struct AttentionTools {
  explicit AttentionTools(const AttentionCall& call);

  GemmLoops<T> gemm;
  AttentionLoops<T> loops;
  MoveLoop load, store;  // between the call's dtype and T
  MoveLoop copy;         // between T and T
  bool plain;            // the call's dtype is T

  int64_t rows() const { return gemm.rows; }
  int64_t width() const { return gemm.columns; }
  int64_t size() const { return plain ? int64_t(sizeof(T)) : 2; }

  // Whether products can read rows of `matrix` where they lie.
  bool reads(const AttentionCall& call, int operand) const;
  // The same for a right-hand factor, which is read by vectors.
  bool reads_vectors(const AttentionCall& call, int operand) const;
  // Whether rows of `matrix` lie one behind the other, as T.
  bool packed(const AttentionCall& call, int operand) const;
  // n rows that are packed become those of an output's last two axes from row `first` on.
  void store_rows(const AttentionRun& run, int operand, char* matrix, int64_t first, int64_t n,
                  const T* from) const;
  // n rows of the operand's last two axes from row `first` on, as copies.
  void copy_rows(const AttentionRun& run, int operand, const char* matrix, int64_t first, int64_t n,
                 T* to) const;
  // The same, or where they lie.
  Rows<T> rows_of(const AttentionRun& run, int operand, const char* matrix, int64_t first,
                  int64_t n, T* room) const;

  // The rows of a matrix are added, where they are whole.
  void add_rows(Ahead& ahead, const AttentionRun& run, int operand, int64_t i, int64_t j) const;

  // Rows as one panel: [columns][width()], zero beyond n.
  void pack_panel(T* to, const Rows<T>& from, int64_t n, int64_t columns) const;

  // c (m, width) (+)= a b over `depth`: c and b row-major, and a too, or transposed.
  struct Product {
    int64_t m, depth, width;
    const T* a;
    int64_t a_step;
    const T* b;
    int64_t b_step;
    T* c;
    int64_t c_step;
    bool add;
    Ahead* ahead = nullptr;  // fetched from meanwhile
  };
  void multiply(const Product& p) const { multiply(p, gemm.by_rows, p.a_step); }
  void multiply_transposed(const Product& p) const { multiply(p, gemm.by_columns, 1); }

 private:
  using Kernels = typename GemmLoops<T>::Kernel[kMaxGemmRows][kMaxGemmVectors];
  void multiply(const Product& p, const Kernels& kernels, int64_t a_row) const;
};

// What a mask does to scores, and dropout to weights.
template <class T>
class AttentionMask {
 public:
  AttentionMask(const AttentionRun& run, const AttentionTools<T>& tools);

  bool masks() const { return run_.call.mask >= 0; }
  bool drops() const { return run_.call.key >= 0; }

  // n queries from (b, h, t) on and m keys from s on, whose scores are at first + i * row +
  // j * column.
  struct Place {
    int64_t b, h, t, s, n, m, first, row, column;
  };
  // The mask's elements of these scores, at their places in `room`.
  void load(const Place& place, T* room) const;
  // To `count` scores from place `first` on.
  void apply(int64_t first, int64_t count, T* scores, const T* room) const;

  // Factors of m weights from (b, h, t, s) on; `room` for m numbers of 8 + 4 bytes.
  void draw(int64_t b, int64_t h, int64_t t, int64_t s, int64_t m, T* factors, char* room) const;

 private:
  AttentionRun run_;
  const AttentionTools<T>& tools_;
  bool is_bool_;
  float most_ = 1;
  T scale_ = 1;
  int64_t key_ = 0, offset_ = 0;
};

// Whole parts of a scratch block, 64-byte aligned.
class Room {
 public:
  int64_t add(int64_t bytes) {
    const int64_t at = bytes_;
    bytes_ += (bytes + 63) / 64 * 64;
    return at;
  }
  int64_t bytes() const { return bytes_; }

 private:
  int64_t bytes_ = 0;
};

}  // namespace tessera::cpu
