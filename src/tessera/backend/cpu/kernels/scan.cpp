// cumsum, cumprod: x -> y; y[…, i, …] is the total of x[…, 0 … i, …] along the axis. A line along
// the axis is walked by one thread from its start.
#include <algorithm>
#include <functional>
#include <type_traits>

#include "tessera/backend/cpu/kernels/named_kernel.h"
#include "tessera/base/thread_pool.h"

namespace tessera::cpu {

namespace {

constexpr int64_t kWorthAThread = 16384;  // elements
constexpr int64_t kLanes = 64;            // lines walked side by side

// f32 is accumulated in f64: the error of a long total stays that of its last rounding.
template <class T>
struct Accumulator {
  using type = T;
};
template <>
struct Accumulator<float> {
  using type = double;
};
template <>
struct Accumulator<f16> {
  using type = float;
};
template <>
struct Accumulator<bf16> {
  using type = float;
};

struct Add {
  template <class T>
  static T apply(T a, T b) {
    return a + b;
  }
};
struct Multiply {
  template <class T>
  static T apply(T a, T b) {
    return a * b;
  }
};

// Signed overflow is undefined and small types widen to int: integers are folded as unsigned, 64
// bits wide, and cut.
template <class Fold, class A>
A fold(A total, A value) {
  if constexpr (std::is_integral_v<A>) {
    return A(Fold::apply(uint64_t(total), uint64_t(value)));
  } else {
    return Fold::apply(total, value);
  }
}

template <class Fold>
class Scan : public NamedKernel {
 public:
  explicit Scan(const KernelCall& call)
      : dtype_(call.operands[0].dtype),
        x_(call.operands[0].view),
        y_(call.operands[1].view),
        axis_(int(call.attrs.axis)),
        count_(x_.shape[axis_]) {
    // Side by side go lines that lie closer together than the elements of one: along a row-major
    // array's first axis, say.
    for (int d = 0; d < x_.shape.rank(); ++d) {
      const int64_t stride = std::abs(x_.strides[d]);
      const int64_t nearest = std::abs(x_.strides[lane_axis_ < 0 ? axis_ : lane_axis_]);
      if (d != axis_ && x_.shape[d] > 1 && stride > 0 && stride < nearest) lane_axis_ = d;
    }
    if (lane_axis_ >= 0) width_ = x_.shape[lane_axis_];
  }

  void run(std::span<char* const> at) const override {
    const int64_t elements = numel(x_.shape);
    if (elements == 0) return;
    const int64_t pieces = (width_ + kLanes - 1) / kLanes;
    const int64_t tasks = elements / count_ / width_ * pieces;
    auto body = [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; ++task) {
        run_piece(at[0], at[1], task / pieces, task % pieces * kLanes);
      }
    };
    const int64_t grain = std::max<int64_t>(1, kWorthAThread / (count_ * std::min(kLanes, width_)));
    thread_pool().parallel_for(tasks, grain, std::cref(body));
  }

 private:
  // The first element of a view's lines at a position beside the axis and the lanes, row-major.
  int64_t start_of(const View& view, int64_t position) const {
    int64_t start = view.offset;
    for (int d = view.shape.rank() - 1; d >= 0; --d) {
      if (d == axis_ || d == lane_axis_) continue;
      start += position % view.shape[d] * view.strides[d];
      position /= view.shape[d];
    }
    return start;
  }

  void run_piece(const char* x, char* y, int64_t position, int64_t lane) const {
    visit(dtype_, [&]<class T>() {
      if constexpr (!std::is_same_v<T, bool>) {
        const T* from = reinterpret_cast<const T*>(x) + start_of(x_, position);
        T* to = reinterpret_cast<T*>(y) + start_of(y_, position);
        if (lane_axis_ < 0) return run_line(from, to);
        const int64_t from_step = x_.strides[lane_axis_], to_step = y_.strides[lane_axis_];
        const int64_t lanes = std::min(kLanes, width_ - lane);
        if (from_step == 1 && to_step == 1) {
          run_lanes(from + lane, to + lane, lanes, std::integral_constant<int64_t, 1>{},
                    std::integral_constant<int64_t, 1>{});
        } else {
          run_lanes(from + lane * from_step, to + lane * to_step, lanes, from_step, to_step);
        }
      }
    });
  }

  template <class T>
  void run_line(const T* from, T* to) const {
    using A = typename Accumulator<T>::type;
    const int64_t from_step = x_.strides[axis_], to_step = y_.strides[axis_];
    A total = A(from[0]);  // not 0 + it: -0 stays -0
    to[0] = from[0];
    for (int64_t i = 1; i < count_; ++i) {
      total = fold<Fold>(total, A(from[i * from_step]));
      to[i * to_step] = T(total);
    }
  }

  // A step of integral_constant is known to the compiler, which then uses vectors.
  template <class T, class FromStep, class ToStep>
  void run_lanes(const T* from, T* to, int64_t lanes, FromStep from_step, ToStep to_step) const {
    using A = typename Accumulator<T>::type;
    A totals[kLanes];
    for (int64_t j = 0; j < lanes; ++j) {
      totals[j] = A(from[j * from_step]);
      to[j * to_step] = from[j * from_step];
    }
    for (int64_t i = 1; i < count_; ++i) {
      from += x_.strides[axis_];
      to += y_.strides[axis_];
      for (int64_t j = 0; j < lanes; ++j) {
        totals[j] = fold<Fold>(totals[j], A(from[j * from_step]));
        to[j * to_step] = T(totals[j]);
      }
    }
  }

  DType dtype_;
  View x_, y_;
  int axis_;
  int64_t count_;
  int lane_axis_ = -1;  // -1: one line at a time
  int64_t width_ = 1;
};

void expect_scan(const KernelCall& call) {
  const OperandView& x = call.operands[0];
  expect_axis(call, x.view.shape.rank());
  if (x.dtype == DType::boolean) fail(call.kernel, ": expected x of a numeric type, got bool");
  expect_shape(call, 1, "y", x.view.shape);
  expect_dtype(call, 1, "y", x.dtype);
}

}  // namespace

std::unique_ptr<NamedKernel> make_cumsum(const KernelCall& call) {
  expect_scan(call);
  return std::make_unique<Scan<Add>>(call);
}

std::unique_ptr<NamedKernel> make_cumprod(const KernelCall& call) {
  expect_scan(call);
  return std::make_unique<Scan<Multiply>>(call);
}

}  // namespace tessera::cpu
