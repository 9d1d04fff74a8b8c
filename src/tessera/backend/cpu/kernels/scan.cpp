// cumsum, cumprod: x -> y; y[…, i, …] is the total of x[…, 0 … i, …] along the axis. A line along
// the axis is walked by one thread from its start, several of them side by side. A long line is cut
// into pieces, whose totals are found first; where they are follows from its length alone, so the
// result does not depend on the number of threads.
#include <algorithm>
#include <functional>
#include <type_traits>

#include "tessera/backend/cpu/kernels/named_kernel.h"
#include "tessera/backend/cpu/scratch.h"
#include "tessera/base/thread_pool.h"

namespace tessera::cpu {

namespace {

constexpr int64_t kWorthAThread = 16384;  // elements
constexpr int64_t kLanes = 64;            // lines walked side by side
constexpr int64_t kPiece = 4160;          // elements; no power of two, which would share cache sets
constexpr int64_t kLongLine = 8 * kPiece;
constexpr int64_t kSideBySide = 4;  // pieces or lines: one addition waits for the one before

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
    if (lane_axis_ < 0) return run_lines(at, elements / count_);
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

  void run_lines(std::span<char* const> at, int64_t lines) const {
    visit(dtype_, [&]<class T>() {
      if constexpr (!std::is_same_v<T, bool>) {
        const T* from = reinterpret_cast<const T*>(at[0]);
        T* to = reinterpret_cast<T*>(at[1]);
        if (cuts_lines<T>() && count_ >= kLongLine) {
          for (int64_t i = 0; i < lines; ++i) {
            run_long(from + start_of(x_, i), to + start_of(y_, i));
          }
          return;
        }
        auto body = [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; i += kSideBySide) {
            Walk<T> walks[kSideBySide];
            const int64_t n = std::min(kSideBySide, end - i);
            for (int64_t k = 0; k < n; ++k) {
              walks[k] = start_walk(from + start_of(x_, i + k), to + start_of(y_, i + k));
            }
            if (n == kSideBySide) {
              walk<kSideBySide>(walks, 1, count_);
            } else {
              for (int64_t k = 0; k < n; ++k) walk<1>(walks + k, 1, count_);
            }
          }
        };
        const int64_t grain = std::max<int64_t>(kSideBySide, kWorthAThread / count_);
        thread_pool().parallel_for(lines, grain, std::cref(body));
      }
    });
  }

  // Only where no total of a piece can do what the whole does not: overflow, or be 0 for what
  // follows it.
  template <class T>
  static constexpr bool cuts_lines() {
    return std::is_same_v<Fold, Add> &&
           (std::is_integral_v<T> || std::is_same_v<T, float> || std::is_same_v<T, f16>);
  }

  // A line, or a piece of one, on its way.
  template <class T>
  struct Walk {
    const T* from;
    T* to;
    typename Accumulator<T>::type total;
  };

  // With the line's first element done.
  template <class T>
  static Walk<T> start_walk(const T* from, T* to) {
    *to = *from;  // not 0 + it: -0 stays -0
    return {from, to, typename Accumulator<T>::type(*from)};
  }

  template <int64_t kWalks, class T>
  void walk(Walk<T>* walks, int64_t begin, int64_t end) const {
    using A = typename Accumulator<T>::type;
    const int64_t from_step = x_.strides[axis_], to_step = y_.strides[axis_];
    Walk<T> at[kWalks];
    std::copy(walks, walks + kWalks, at);
    for (int64_t i = begin; i < end; ++i) {
      for (Walk<T>& w : at) {
        w.total = fold<Fold>(w.total, A(w.from[i * from_step]));
        w.to[i * to_step] = T(w.total);
      }
    }
  }

  template <class T>
  void run_long(const T* from, T* to) const {
    using A = typename Accumulator<T>::type;
    const int64_t pieces = (count_ + kPiece - 1) / kPiece;
    const int64_t groups = (pieces + kSideBySide - 1) / kSideBySide;
    A* totals = reinterpret_cast<A*>(scratch(Scratch::launch, pieces * int64_t(sizeof(A))));
    auto add_up = [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) totals[p] = total_of(from, p * kPiece);
    };
    thread_pool().parallel_for(pieces - 1, kSideBySide,
                               std::cref(add_up));  // the last leads nowhere
    for (int64_t p = 1; p < pieces - 1; ++p) totals[p] = fold<Fold>(totals[p - 1], totals[p]);
    auto walk_pieces = [&](int64_t begin, int64_t end) {
      for (int64_t g = begin; g < end; ++g) {
        const int64_t first = g * kSideBySide, last = std::min(first + kSideBySide, pieces);
        run_pieces(from, to, totals, first, last);
      }
    };
    thread_pool().parallel_for(groups, 1, std::cref(walk_pieces));
  }

  // Of a whole piece, in four parts that do not wait for each other.
  template <class T>
  auto total_of(const T* from, int64_t start) const {
    using A = typename Accumulator<T>::type;
    const int64_t step = x_.strides[axis_];
    constexpr A kNone = std::is_floating_point_v<A> ? A(-0.0) : A(0);  // -0 + -0 is -0
    A parts[4] = {kNone, kNone, kNone, kNone};
    for (int64_t i = start; i < start + kPiece; i += 4) {
      for (int64_t k = 0; k < 4; ++k) parts[k] = fold<Fold>(parts[k], A(from[(i + k) * step]));
    }
    return fold<Fold>(fold<Fold>(parts[0], parts[1]), fold<Fold>(parts[2], parts[3]));
  }

  template <class T, class A>
  void run_pieces(const T* from, T* to, const A* totals, int64_t first, int64_t last) const {
    const int64_t from_step = x_.strides[axis_], to_step = y_.strides[axis_];
    const bool together = first > 0 && last - first == kSideBySide && last * kPiece <= count_;
    Walk<T> walks[kSideBySide];
    for (int64_t p = first; p < last; ++p) {
      const int64_t start = p * kPiece, size = std::min(kPiece, count_ - start);
      Walk<T>& w = walks[p - first];
      w = {from + start * from_step, to + start * to_step, A()};
      if (p == 0) w = start_walk(w.from, w.to);
      if (p > 0) w.total = totals[p - 1];
      if (!together) walk<1>(&w, p == 0 ? 1 : 0, size);
    }
    if (together) walk<kSideBySide>(walks, 0, kPiece);
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
