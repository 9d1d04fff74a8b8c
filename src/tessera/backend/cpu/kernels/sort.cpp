// sort: x -> values, indices; over the last axis, stable, NaN greatest. Short rows are dealt out to
// the threads, several at a time where their elements lie side by side in memory; a long row is
// sorted in parts, which are then merged two by two, each merge cut into pieces that do not depend
// on each other.
#include <algorithm>
#include <functional>

#include "tessera/backend/cpu/kernels/named_kernel.h"
#include "tessera/backend/cpu/kernels/rows.h"
#include "tessera/backend/cpu/kernels/sort_entries.h"
#include "tessera/backend/cpu/scratch.h"
#include "tessera/base/thread_pool.h"

namespace tessera::cpu {

namespace {

constexpr int64_t kLongRow = 65536;  // worth several threads
constexpr int64_t kPiece = 32768;    // entries of one task of a merge
constexpr int64_t kMostRows = 16;    // of a block: a cache line of f32
constexpr int64_t kBlock = 65536;    // entries of a block, which a second-level cache holds

// How many of the `count` first entries of the merged runs come from a.
template <class E>
int64_t split_merge(const E* a, int64_t a_size, const E* b, int64_t b_size, int64_t count) {
  int64_t low = std::max<int64_t>(0, count - b_size), high = std::min(count, a_size);
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    if (a[middle] < b[count - middle - 1]) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

// Runs that begin at multiples of `run` are sorted; merges them in pairs from `from` to `to`.
template <class E>
void merge_pairs(const E* from, E* to, int64_t n, int64_t run) {
  const int64_t pair = 2 * run;
  const int64_t pieces = (pair + kPiece - 1) / kPiece;  // of a pair
  auto body = [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t start = task / pieces * pair;
      const int64_t a_size = std::min(run, n - start), b_size = std::min(run, n - start - a_size);
      const E *a = from + start, *b = a + a_size;
      const int64_t first = std::min(task % pieces * kPiece, a_size + b_size);
      const int64_t last = std::min(first + kPiece, a_size + b_size);
      const int64_t i = split_merge(a, a_size, b, b_size, first);
      const int64_t j = split_merge(a, a_size, b, b_size, last);
      std::merge(a + i, a + j, b + (first - i), b + (last - j), to + start + first);
    }
  };
  thread_pool().parallel_for((n + pair - 1) / pair * pieces, 1, std::cref(body));
}

class Sort : public NamedKernel {
 public:
  explicit Sort(const KernelCall& call)
      : x_(call.operands[0]),
        values_(call.operands[1].view),
        indices_(call.operands[2].view),
        shape_(row_shape(x_.view.shape)),
        descending_(call.attrs.axis == 1) {}

  void run(std::span<char* const> at) const override {
    if (shape_.rows == 0 || shape_.columns == 0) return;
    visit_entries(x_.dtype, shape_.columns, [&]<class T, class E>() { run_rows<T, E>(at); });
  }

 private:
  template <class T>
  struct Row {
    const T* x;
    T* values;         // null where nobody wants them
    int64_t* indices;  // likewise
  };

  template <class T>
  Row<T> row_at(std::span<char* const> at, int64_t row) const {
    Row<T> result{reinterpret_cast<const T*>(at[0]) + row_start(x_.view, row), nullptr, nullptr};
    if (at[1] != nullptr) result.values = reinterpret_cast<T*>(at[1]) + row_start(values_, row);
    if (at[2] != nullptr) {
      result.indices = reinterpret_cast<int64_t*>(at[2]) + row_start(indices_, row);
    }
    return result;
  }

  template <class T, class E>
  void load(const Row<T>& row, E* to, int64_t begin, int64_t end) const {
    const RowEntries<T, E> entries{row.x, x_.view.strides.back(), descending_};
    for (int64_t i = begin; i < end; ++i) to[i] = entries[i];
  }

  template <class T, class E>
  void store(const Row<T>& row, const E* from, int64_t begin, int64_t end) const {
    const int64_t x_step = x_.view.strides.back();
    const int64_t v_step = values_.strides.back(), i_step = indices_.strides.back();
    for (int64_t i = begin; row.values != nullptr && i < end; ++i) {
      row.values[i * v_step] = row.x[from[i].place() * x_step];
    }
    for (int64_t i = begin; row.indices != nullptr && i < end; ++i) {
      row.indices[i * i_step] = from[i].place();
    }
  }

  template <class T, class E>
  void run_rows(std::span<char* const> at) const {
    const int64_t n = shape_.columns, threads = 1 + thread_pool().workers();
    if (n >= kLongRow && shape_.rows < threads) {
      for (int64_t row = 0; row < shape_.rows; ++row) run_long<T, E>(row_at<T>(at, row));
      return;
    }
    const int64_t rows = rows_of_block();
    auto body = [&](int64_t begin, int64_t end) {
      const int64_t room = (rows + 1) * n * int64_t(sizeof(E));
      E* entries = reinterpret_cast<E*>(scratch(Scratch::tile, room));
      for (int64_t i = begin; i < end; i += rows) {
        run_block<T, E>(at, i, std::min(rows, end - i), entries);
      }
    };
    const int64_t grain = (rows_per_task(n) + rows - 1) / rows * rows;
    thread_pool().parallel_for(shape_.rows, grain, std::cref(body));
  }

  // Rows whose elements are each other's neighbours are loaded and stored together: one alone would
  // use one element of every cache line.
  int64_t rows_of_block() const {
    const int before = x_.view.shape.rank() - 2;
    const bool side_by_side =
        before >= 0 && x_.view.strides.back() != 1 && x_.view.strides[before] == 1;
    if (!side_by_side) return 1;
    return std::clamp<int64_t>(kBlock / shape_.columns, 1, kMostRows);
  }

  template <class T, class E>
  void run_block(std::span<char* const> at, int64_t first, int64_t rows, E* entries) const {
    const int64_t n = shape_.columns;
    constexpr int64_t kStep = 64;  // elements of a row before the next row's turn
    Row<T> block[kMostRows];
    for (int64_t r = 0; r < rows; ++r) block[r] = row_at<T>(at, first + r);
    for (int64_t i = 0; i < n; i += kStep) {
      for (int64_t r = 0; r < rows; ++r) load(block[r], entries + r * n, i, std::min(i + kStep, n));
    }
    for (int64_t r = 0; r < rows; ++r) {
      sort_entries(entries + r * n, entries + rows * n, n, sizeof(T));
    }
    for (int64_t i = 0; i < n; i += kStep) {
      for (int64_t r = 0; r < rows; ++r)
        store(block[r], entries + r * n, i, std::min(i + kStep, n));
    }
  }

  template <class T, class E>
  void run_long(const Row<T>& row) const {
    const int64_t n = shape_.columns, threads = 1 + thread_pool().workers();
    const int64_t part = std::max(kPiece, (n + threads - 1) / threads);
    E* from = reinterpret_cast<E*>(scratch(Scratch::launch, 2 * n * int64_t(sizeof(E))));
    E* to = from + n;
    auto sort_parts = [&](int64_t begin, int64_t end) {
      for (int64_t i = begin * part; i < std::min(end * part, n); i += part) {
        const int64_t size = std::min(part, n - i);
        load(row, from, i, i + size);
        sort_entries(from + i, to + i, size, sizeof(T));
      }
    };
    thread_pool().parallel_for((n + part - 1) / part, 1, std::cref(sort_parts));
    for (int64_t run = part; run < n; run *= 2) {
      merge_pairs(from, to, n, run);
      std::swap(from, to);
    }
    auto store_parts = [&](int64_t begin, int64_t end) { store(row, from, begin, end); };
    thread_pool().parallel_for(n, kPiece, std::cref(store_parts));
  }

  OperandView x_;
  View values_, indices_;
  RowShape shape_;
  bool descending_;
};

}  // namespace

std::unique_ptr<NamedKernel> make_sort(const KernelCall& call) {
  const OperandView& x = call.operands[0];
  if (x.view.shape.empty()) fail("sort: expected x of at least 1 dimension, got ()");
  expect_shape(call, 1, "values", x.view.shape);
  expect_dtype(call, 1, "values", x.dtype);
  expect_shape(call, 2, "indices", x.view.shape);
  expect_dtype(call, 2, "indices", DType::i64);
  return std::make_unique<Sort>(call);
}

}  // namespace tessera::cpu
