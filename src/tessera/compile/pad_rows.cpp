#include <algorithm>
#include <map>

#include "tessera/compile/passes.h"
#include "tessera/compile/views.h"

namespace tessera {

namespace {

// What a row becomes: whole lines of a cache where it hardly grows, else what products need.
struct Padding {
  int64_t multiple;  // of row_bytes
  int64_t share;     // it grows by at most bytes / share
};
constexpr Padding kPaddings[] = {{8, 64}, {1, 8}};

int64_t padded_row(int64_t bytes, int64_t row_bytes) {
  if (bytes % row_bytes == 0) return bytes;
  for (const Padding& padding : kPaddings) {
    const int64_t unit = padding.multiple * row_bytes, more = unit - bytes % unit;
    if (more * padding.share <= bytes) return bytes + more;
  }
  return bytes;
}

// The ops whose kernels take such rows: as how many of their first inputs, and as which output
// (-1: none).
struct RowOp {
  Op op;
  int inputs, output;
};
constexpr RowOp kRowOps[] = {
    {Op::matmul, 2, 0},      {Op::linear, 2, 0},       {Op::linear_slope, 2, -1},
    {Op::matmul_add, 2, -1}, {Op::matmul_sums, 2, -1}, {Op::cross_entropy, 1, 1},
};

const RowOp* row_op(Op op) {
  const auto* const it = std::ranges::find(kRowOps, op, &RowOp::op);
  return it == std::end(kRowOps) ? nullptr : it;
}

class RowPadder {
 public:
  RowPadder(Instances& instances, int64_t row_bytes)
      : instances_(instances), row_bytes_(row_bytes) {}

  void run() {
    for (size_t i = 0; i < instances_.list.size(); ++i) find_candidate(int(i));
    for (const Operand& o : instances_.outputs) keep_packed(o);
    for (const auto& assign : instances_.assigns) keep_packed(assign.value);
    for (const Instance& x : instances_.list) check_inputs(x);
    for (Instance& x : instances_.list) {
      for (Operand& o : x.inputs) {
        if (const Candidate* c = candidate(o)) o.view = *padded_view(o.view, *c);
      }
    }
    for (const auto& [i, c] : candidates_) {
      store(instances_.list[size_t(i)], c.out, {c.out, c.rows, c.elements});
    }
  }

 private:
  struct Candidate {
    int out;
    View rows;  // as they will lie
    int64_t elements;
  };

  static std::optional<View> padded_view(const View& view, const Candidate& c) {
    return rearranged(view, contiguous_view(c.rows.shape), c.rows);
  }

  const Candidate* candidate(const Operand& o) const {
    const auto it = candidates_.find(o.inst);
    return it != candidates_.end() && it->second.out == o.out ? &it->second : nullptr;
  }

  void keep_packed(const Operand& o) {
    if (candidate(o) != nullptr) candidates_.erase(o.inst);
  }

  void find_candidate(int i) {
    const Instance& x = instances_.list[size_t(i)];
    const RowOp* const row = row_op(x.op);
    if (row == nullptr || row->output < 0 || !x.used[size_t(row->output)]) return;
    // What linear gives beside its result lies as the result does.
    if (x.op == Op::linear && x.used[1]) return;
    const Type& type = x.types[size_t(row->output)];
    if (type.shape.rank() < 2 || numel(type.shape) == 0) return;
    const int64_t columns = type.shape.back(), bytes = columns * size_of(type.dtype);
    const int64_t padded = padded_row(bytes, row_bytes_);
    if (padded == bytes) return;
    const int64_t step = padded / size_of(type.dtype);
    candidates_[i] = {row->output, row_view(type.shape, step), numel(type.shape) / columns * step};
  }

  void check_inputs(const Instance& x) {
    const RowOp* const row = row_op(x.op);
    for (size_t k = 0; k < x.inputs.size(); ++k) {
      const Operand& o = x.inputs[k];
      const Candidate* const c = candidate(o);
      if (c == nullptr) continue;
      const auto view = padded_view(o.view, *c);
      // Products walk along any strides, others from row to row.
      const bool takes = row != nullptr && int(k) < row->inputs && view &&
                         (x.op != Op::cross_entropy || row_step(*view));
      if (!takes) keep_packed(o);
    }
  }

  Instances& instances_;
  int64_t row_bytes_;
  std::map<int, Candidate> candidates_;  // by instance
};

}  // namespace

void pad_rows(Instances& instances, int64_t row_bytes) { RowPadder(instances, row_bytes).run(); }

}  // namespace tessera
