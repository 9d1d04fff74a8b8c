// topk: x -> values, indices; the k first of each row in the order of sort, without sorting the
// rest: a row passes by a buffer of 2k entries, which is cut back to its k first whenever it is
// full. Where k is a good part of the row, sorting all of it costs less.
#include <algorithm>
#include <functional>

#include "tessera/backend/cpu/kernels/named_kernel.h"
#include "tessera/backend/cpu/kernels/rows.h"
#include "tessera/backend/cpu/kernels/sort_entries.h"
#include "tessera/backend/cpu/scratch.h"
#include "tessera/base/thread_pool.h"

namespace tessera::cpu {

namespace {

constexpr int64_t kLongRow = 65536;     // worth several threads
constexpr int64_t kFewestEntries = 64;  // of a buffer: cutting back costs a call

int64_t buffer_size(int64_t k) { return std::max(2 * k, kFewestEntries); }

// The k first of entries [begin, end) come to the front of `buffer`, in any order. Returns how many
// there are: fewer where the range is shorter.
template <class Entries, class E>
int64_t select_first(const Entries& entries, int64_t begin, int64_t end, int64_t k, E* buffer) {
  const int64_t capacity = buffer_size(k);
  int64_t held = 0;
  bool bounded = false;
  E bound{};  // the last of the k first so far; what lies behind it cannot be among them
  for (int64_t i = begin; i < end; ++i) {
    const E entry = entries[i];
    if (bounded && !(entry < bound)) continue;
    buffer[held++] = entry;
    if (held < capacity) continue;
    std::nth_element(buffer, buffer + k - 1, buffer + held);
    bound = buffer[k - 1];
    bounded = true;
    held = k;
  }
  if (held > k) std::nth_element(buffer, buffer + k - 1, buffer + held);
  return std::min(held, k);
}

class TopK : public NamedKernel {
 public:
  explicit TopK(const KernelCall& call)
      : x_(call.operands[0]),
        values_(call.operands[1].view),
        indices_(call.operands[2].view),
        shape_(row_shape(x_.view.shape)),
        k_(values_.shape.back()),
        sorts_(4 * k_ > shape_.columns),
        largest_(call.attrs.axis == 1) {}

  void run(std::span<char* const> at) const override {
    if (shape_.rows == 0 || k_ == 0) return;
    visit_entries(x_.dtype, shape_.columns, [&]<class T, class E>() { run_rows<T, E>(at); });
  }

 private:
  template <class T, class E>
  void run_rows(std::span<char* const> at) const {
    const int64_t n = shape_.columns, threads = 1 + thread_pool().workers();
    const bool few_of_many = n >= kLongRow && k_ < n / (8 * threads);
    if (few_of_many && shape_.rows < threads) {
      for (int64_t row = 0; row < shape_.rows; ++row) run_long<T, E>(at, row, threads);
      return;
    }
    auto body = [&](int64_t begin, int64_t end) {
      const int64_t room = sorts_ ? 2 * n : buffer_size(k_);
      E* buffer = reinterpret_cast<E*>(scratch(Scratch::tile, room * int64_t(sizeof(E))));
      for (int64_t row = begin; row < end; ++row) {
        const RowEntries<T, E> entries = entries_at<T, E>(at, row);
        if (sorts_) {
          for (int64_t i = 0; i < n; ++i) buffer[i] = entries[i];
          sort_entries(buffer, buffer + n, n, sizeof(T));
        } else {
          select_first(entries, 0, n, k_, buffer);
          std::sort(buffer, buffer + k_);
        }
        store(at, row, entries.x, buffer);
      }
    };
    thread_pool().parallel_for(shape_.rows, rows_per_task(n), std::cref(body));
  }

  // The first of each part, then the first of these.
  template <class T, class E>
  void run_long(std::span<char* const> at, int64_t row, int64_t parts) const {
    const RowEntries<T, E> entries = entries_at<T, E>(at, row);
    const int64_t n = shape_.columns, size = buffer_size(k_);
    const int64_t bytes = (parts + 1) * size * int64_t(sizeof(E));
    E* buffers = reinterpret_cast<E*>(scratch(Scratch::launch, bytes));
    auto body = [&](int64_t begin, int64_t end) {
      for (int64_t part = begin; part < end; ++part) {
        select_first(entries, n * part / parts, n * (part + 1) / parts, k_, buffers + part * size);
      }
    };
    thread_pool().parallel_for(parts, 1, std::cref(body));
    // Every part is longer than k: its buffer begins with k entries.
    const auto candidate = [&](int64_t i) { return buffers[i / k_ * size + i % k_]; };
    E* result = buffers + parts * size;
    select_first(Candidates<decltype(candidate)>{candidate}, 0, parts * k_, k_, result);
    std::sort(result, result + k_);
    store(at, row, entries.x, result);
  }

  template <class F>
  struct Candidates {
    const F& at;
    auto operator[](int64_t i) const { return at(i); }
  };

  template <class T, class E>
  RowEntries<T, E> entries_at(std::span<char* const> at, int64_t row) const {
    const T* x = reinterpret_cast<const T*>(at[0]) + row_start(x_.view, row);
    return {x, x_.view.strides.back(), largest_};
  }

  template <class T, class E>
  void store(std::span<char* const> at, int64_t row, const T* x, const E* entries) const {
    if (at[1] != nullptr) {
      T* values = reinterpret_cast<T*>(at[1]) + row_start(values_, row);
      for (int64_t i = 0; i < k_; ++i) {
        values[i * values_.strides.back()] = x[entries[i].place() * x_.view.strides.back()];
      }
    }
    if (at[2] != nullptr) {
      int64_t* indices = reinterpret_cast<int64_t*>(at[2]) + row_start(indices_, row);
      for (int64_t i = 0; i < k_; ++i) indices[i * indices_.strides.back()] = entries[i].place();
    }
  }

  OperandView x_;
  View values_, indices_;
  RowShape shape_;
  int64_t k_;
  bool sorts_, largest_;
};

}  // namespace

std::unique_ptr<NamedKernel> make_topk(const KernelCall& call) {
  const OperandView& x = call.operands[0];
  Shape first = call.operands[1].view.shape;
  const bool fits = !x.view.shape.empty() && first.rank() == x.view.shape.rank() &&
                    first.back() <= x.view.shape.back();
  if (!fits) fail("topk: expected values of at most ", x.view.shape, ", got ", first);
  expect_dtype(call, 1, "values", x.dtype);
  expect_shape(call, 2, "indices", first);
  expect_dtype(call, 2, "indices", DType::i64);
  first[first.rank() - 1] = x.view.shape.back();
  if (first != x.view.shape) {
    fail("topk: expected values of as many rows as x has, got ", call.operands[1].view.shape,
         " for ", x.view.shape);
  }
  return std::make_unique<TopK>(call);
}

}  // namespace tessera::cpu
