// scatter_add, scatter: x, index, src -> y; y = x, then y[…, index[p], …] += src[p], or = src[p],
// for every position p of src, along the axis. Positions that meet at one element lie on one line
// along the axis. A line is walked in order, by one thread or by several that write different parts
// of it: the result does not depend on the number of threads, and the last position wins where
// elements are replaced.
#include <algorithm>
#include <functional>
#include <type_traits>
#include <vector>

#include "tessera/backend/cpu/isa.h"
#include "tessera/backend/cpu/kernels/index_reader.h"
#include "tessera/backend/cpu/kernels/named_kernel.h"
#include "tessera/backend/cpu/kernels/view_copy.h"
#include "tessera/base/thread_pool.h"

namespace tessera::cpu {

namespace {

constexpr int64_t kWorthAThread = 16384;  // elements of src

// Lines along the axis, bundled: `width` neighbours along the last dimension at a time.
struct Bundle {
  int64_t y, index, src;  // element offsets of the first line's start
  int64_t width;
  int64_t low, high;  // the part of the lines that is written: indices outside are passed over
};

constexpr int64_t kWideRun = 32;  // elements that are worth a call

template <bool kAdds>
class Scatter : public NamedKernel {
 public:
  explicit Scatter(const KernelCall& call)
      : x_(call.operands[0]),
        index_view_(call.operands[1].view),
        src_(call.operands[2]),
        y_(call.operands[3]),
        axis_(int(call.attrs.axis)),
        reader_(call.operands[1]),
        target_(accumulator(y_)),
        into_(x_, target_) {
    if (kAdds && is_half(y_.dtype)) out_of_.emplace(target_, y_);
    same_view_ = x_.view == y_.view;
    count_ = src_.view.shape[axis_];
    limit_ = x_.view.shape[axis_];
    const int last = src_.view.shape.rank() - 1;
    width_ = axis_ == last ? 1 : src_.view.shape[last];
  }

  void run(std::span<char* const> at) const override {
    if (numel(src_.view.shape) > 0) check_indices(at[1]);
    char* target = at[3];
    if (out_of_) {
      // Not from scratch(), which the copies below use.
      held_.resize(size_t(numel(y_.view.shape)));
      target = reinterpret_cast<char*>(held_.data());
    }
    if (out_of_ || at[0] != at[3] || !same_view_) into_.run(at[0], target);
    if (numel(src_.view.shape) > 0) put_all(at[1], at[2], target);
    if (out_of_) out_of_->run(target, at[3]);
  }

 private:
  // Half types are summed in f32 and rounded once.
  static OperandView accumulator(const OperandView& y) {
    if (!kAdds || !is_half(y.dtype)) return y;
    return {DType::f32, contiguous_view(y.view.shape)};
  }

  // Every index is looked at before y is touched. Where the index does not move, one look is
  // enough.
  void check_indices(const char* index) const {
    const int rank = index_view_.shape.rank();
    auto extent = [&](int d) { return index_view_.strides[d] == 0 ? 1 : index_view_.shape[d]; };
    int along = rank - 1;  // the last dimension in which it moves
    while (along > 0 && extent(along) == 1) --along;
    Dims at = Dims::filled(rank, 0);
    int64_t offset = 0;
    for (int d = 0; d >= 0;) {
      check_run(index, offset, extent(along), index_view_.strides[along]);
      for (d = along - 1; d >= 0; --d) {
        offset += index_view_.strides[d];
        if (++at[d] < extent(d)) break;
        offset -= at[d] * index_view_.strides[d];
        at[d] = 0;
      }
    }
  }

  void check_run(const char* index, int64_t offset, int64_t n, int64_t stride) const {
    int64_t i = 0;
    if (const int64_t* plain = reader_.plain(index); plain != nullptr && stride == 1) {
      i = loops().find_outside(n, plain + offset, limit_);
    }
    for (; i < n; ++i) {
      const int64_t value = reader_.read(index, offset + i * stride);
      if (value >= 0 && value < limit_) continue;
      fail(kAdds ? "scatter_add" : "scatter", ": index ", value, " is out of range [0, ", limit_,
           ")");
    }
  }

  int64_t bundle_count() const {
    return numel(src_.view.shape) / std::max<int64_t>(1, count_ * width_);
  }

  // The bundle at a position of the dimensions beside the axis and the last one, row-major.
  Bundle bundle(int64_t position) const {
    Bundle b{target_.view.offset, 0, src_.view.offset, width_, 0, limit_};
    const int last = src_.view.shape.rank() - 1;
    for (int d = last; d >= 0; --d) {
      if (d == axis_ || d == last) continue;
      const int64_t at = position % src_.view.shape[d];
      position /= src_.view.shape[d];
      b.y += at * target_.view.strides[d];
      b.index += at * index_view_.strides[d];
      b.src += at * src_.view.strides[d];
    }
    return b;
  }

  void put_all(const char* index, const char* src, char* target) const {
    // So that a single bundle still serves several threads, wide ones are split into pieces of
    // their width, and where that is too few, into ranges of the axis: each walks all indices.
    const int64_t threads = 1 + thread_pool().workers();
    const int64_t pieces = std::clamp<int64_t>(width_ / 64, 1, 2 * threads);
    const bool few = bundle_count() * pieces < threads;
    const int64_t ranges = few ? std::min(limit_, threads) : 1;
    const int64_t tasks = bundle_count() * pieces * ranges;
    const int64_t per_task = std::max<int64_t>(1, count_ * width_ / pieces / ranges);
    const int last = src_.view.shape.rank() - 1;
    auto body = [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; ++task) {
        const int64_t part = task / ranges, range = task % ranges, piece = part % pieces;
        Bundle b = bundle(part / pieces);
        b.low = limit_ * range / ranges;
        b.high = limit_ * (range + 1) / ranges;
        const int64_t first = width_ * piece / pieces;
        b.y += first * target_.view.strides[last];
        b.index += first * index_view_.strides[last];
        b.src += first * src_.view.strides[last];
        b.width = width_ * (piece + 1) / pieces - first;
        put_bundle(b, index, src, target);
      }
    };
    const int64_t grain = std::max<int64_t>(1, kWorthAThread / per_task);
    if (tasks <= grain) return body(0, tasks);
    thread_pool().parallel_for(tasks, grain, std::cref(body));
  }

  void put_bundle(const Bundle& b, const char* index, const char* src, char* target) const {
    visit(src_.dtype, [&]<class S>() {
      constexpr bool kHalf = std::is_same_v<S, f16> || std::is_same_v<S, bf16>;
      using T = std::conditional_t<kAdds && kHalf, float, S>;
      if constexpr (!kAdds || !std::is_same_v<S, bool>) {
        put_typed(b, index, reinterpret_cast<const S*>(src), reinterpret_cast<T*>(target));
      }
    });
  }

  template <class S, class T>
  void put_typed(const Bundle& b, const char* index, const S* src, T* target) const {
    const int last = src_.view.shape.rank() - 1;
    const int64_t y_step = target_.view.strides[last], s_step = src_.view.strides[last];
    const int64_t i_step = axis_ == last ? 0 : index_view_.strides[last];
    const int64_t row_stride = target_.view.strides[axis_];
    T* line = target + b.y;
    src += b.src;
    if (i_step == 0 && b.width == 1) {
      return for_each_position(b, index, [&](int64_t p, int64_t row) {
        put(line[row * row_stride], src[p * src_.view.strides[axis_]]);
      });
    }
    if (i_step == 0) {
      return for_each_position(b, index, [&](int64_t p, int64_t row) {
        const S* from = src + p * src_.view.strides[axis_];
        put_run(line + row * row_stride, y_step, from, s_step, b.width);
      });
    }
    for (int64_t p = 0; p < count_; ++p) {
      const int64_t at = b.index + p * index_view_.strides[axis_];
      const S* from = src + p * src_.view.strides[axis_];
      for (int64_t j = 0; j < b.width; ++j) {
        const int64_t row = reader_.read(index, at + j * i_step);
        if (row < b.low || row >= b.high) continue;
        put(line[row * row_stride + j * y_step], from[j * s_step]);
      }
    }
  }

  // f(position, its index) for those of a bundle whose index is in its range. These are collected
  // first, without a branch that nothing foretells.
  template <class F>
  void for_each_position(const Bundle& b, const char* index, F f) const {
    constexpr int64_t kBatch = 256;
    const int64_t stride = index_view_.strides[axis_];
    const int64_t* const plain = reader_.plain(index);
    int64_t positions[kBatch], rows[kBatch];
    for (int64_t first = 0; first < count_; first += kBatch) {
      int64_t found = 0;
      for (int64_t p = first; p < std::min(first + kBatch, count_); ++p) {
        const int64_t at = b.index + p * stride;
        const int64_t row = plain != nullptr ? plain[at] : reader_.read(index, at);
        positions[found] = p;
        rows[found] = row;
        found += row >= b.low && row < b.high ? 1 : 0;
      }
      for (int64_t k = 0; k < found; ++k) f(positions[k], rows[k]);
    }
  }

  template <class S, class T>
  static void put_run(T* to, int64_t to_step, const S* from, int64_t from_step, int64_t n) {
    if (to_step == 1 && from_step == 1) {
      if constexpr (kAdds && std::is_same_v<S, T>) {
        if (n >= kWideRun) {
          constexpr int kSum = int(ReduceOp::sum);
          return loops().combine[kSum][int(dtype_of<T>)](n, to, nullptr, from, nullptr);
        }
      }
      for (int64_t j = 0; j < n; ++j) put(to[j], from[j]);
    } else {
      for (int64_t j = 0; j < n; ++j) put(to[j * to_step], from[j * from_step]);
    }
  }

  // Integers wrap: signed overflow is undefined, so the sum is formed unsigned.
  template <class T, class S>
  static void put(T& to, S value) {
    if constexpr (!kAdds) {
      to = value;
    } else if constexpr (std::is_integral_v<T>) {
      using U = std::make_unsigned_t<T>;
      to = T(U(U(to) + U(value)));
    } else {
      to += T(value);
    }
  }

  OperandView x_;
  View index_view_;
  OperandView src_, y_;
  int axis_;
  IndexReader reader_;
  OperandView target_;
  ViewCopy into_;
  std::optional<ViewCopy> out_of_;
  bool same_view_ = false;
  int64_t count_ = 0, limit_ = 0, width_ = 1;
  static thread_local std::vector<float> held_;
};

template <bool kAdds>
thread_local std::vector<float> Scatter<kAdds>::held_;

void expect_scatter(const KernelCall& call) {
  const Shape& x = call.operands[0].view.shape;
  expect_axis(call, x.rank());
  expect_index(call, 1, "index");
  const DType dtype = call.operands[0].dtype;
  Shape beside = call.operands[1].view.shape;
  if (beside.rank() == x.rank()) beside[int(call.attrs.axis)] = x[int(call.attrs.axis)];
  if (beside != x) {
    fail(call.kernel, ": expected indices that agree with ", x, " beside axis ", call.attrs.axis,
         ", got ", call.operands[1].view.shape);
  }
  expect_shape(call, 2, "src", call.operands[1].view.shape);
  expect_dtype(call, 2, "src", dtype);
  expect_shape(call, 3, "y", x);
  expect_dtype(call, 3, "y", dtype);
}

}  // namespace

std::unique_ptr<NamedKernel> make_scatter_add(const KernelCall& call) {
  if (call.operands[0].dtype == DType::boolean) {
    fail("scatter_add: expected a numeric type, got bool");
  }
  expect_scatter(call);
  return std::make_unique<Scatter<true>>(call);
}

std::unique_ptr<NamedKernel> make_scatter(const KernelCall& call) {
  expect_scatter(call);
  return std::make_unique<Scatter<false>>(call);
}

}  // namespace tessera::cpu
