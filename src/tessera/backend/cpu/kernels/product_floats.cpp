// Blocked matrix product. b is packed into panels of `columns` columns, shared by all threads; each
// task packs its rows of a. A panel of b stays in the first-level cache while the rows of a pass
// by. Each element of c is summed over k in one fixed order, whatever the blocks and threads.
#include <algorithm>
#include <cstring>
#include <functional>

#include "tessera/backend/cpu/isa.h"
#include "tessera/backend/cpu/kernels/product.h"
#include "tessera/backend/cpu/scratch.h"
#include "tessera/base/thread_pool.h"

namespace tessera::cpu {

namespace {

constexpr int64_t kDepth = 256;             // of a packed block, along k
constexpr int64_t kBlockRows = 144;         // of a, per task; a multiple of all kernels' rows
constexpr int64_t kBlockColumns = 3072;     // of b, packed at once
constexpr int64_t kWorthAThread = 1 << 17;  // multiplications
constexpr int64_t kFewRows = 12;            // up to here, dot products beat packing

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

template <class F>
void parallel(int64_t tasks, int64_t work, const F& body) {
  const int64_t grain = std::max<int64_t>(1, tasks * kWorthAThread / std::max<int64_t>(1, work));
  if (tasks <= grain) return body(0, tasks);
  thread_pool().parallel_for(tasks, grain, std::cref(body));
}

template <class T>
class FloatProduct {
 public:
  FloatProduct(const Product& p, const GemmLoops<T>& loops, Storage storage)
      : p_(p),
        loops_(loops),
        load_(cpu::loops().load[int(storage)]),
        store_(cpu::loops().store[int(storage)]),
        size_(size_of(p.dtype)),
        plain_(storage == Storage::bytes4 || storage == Storage::bytes8) {}

  void run() {
    if (p_.m == 0 || p_.n == 0) return;
    if (p_.k == 0) return clear();
    const bool few_rows = p_.m <= kFewRows;
    if (plain_ && few_rows && p_.b_row == 1 && p_.b_column != 1) return run_dots();
    if (plain_ && p_.b_column == 1 && p_.m <= 3 * loops_.rows) return run_direct();
    run_packed();
  }

 private:
  int64_t work() const { return p_.m * p_.n * p_.k; }
  const T* b_at(int64_t k, int64_t j) const {
    return reinterpret_cast<const T*>(p_.b) + k * p_.b_row + j * p_.b_column;
  }
  const char* a_at(int64_t i, int64_t k) const {
    return p_.a + (i * p_.a_row + k * p_.a_column) * size_;
  }
  // c can be written by the kernels themselves.
  bool direct_c() const { return plain_ && p_.c_column == 1; }

  void clear() {
    const T zero = 0;
    store_(p_.c, &zero, {p_.m, p_.n, p_.c_row, p_.c_column, 0, 0});
  }

  void store_rows(const T* from, int64_t stride, int64_t row, int64_t rows, int64_t column,
                  int64_t columns) {
    store_(p_.c + (row * p_.c_row + column * p_.c_column) * size_, from,
           {rows, columns, p_.c_row, p_.c_column, stride, 1});
  }

  // Rows [row, row + rows) of a, k in [k0, k0 + depth), as [depth][rows].
  void pack_a(T* to, int64_t row, int64_t rows, int64_t k0, int64_t depth) const {
    load_(to, a_at(row, k0), {depth, rows, rows, 1, p_.a_column, p_.a_row});
  }

  // Up to `columns` columns of b from `column` on, as [depth][columns], padded with zeros.
  void pack_b(T* to, int64_t column, int64_t k0, int64_t depth) const {
    const int64_t width = std::min<int64_t>(loops_.columns, p_.n - column);
    if (width < loops_.columns) std::memset(to, 0, size_t(depth * loops_.columns) * sizeof(T));
    load_(to, p_.b + (k0 * p_.b_row + column * p_.b_column) * size_,
          {depth, width, loops_.columns, 1, p_.b_row, p_.b_column});
  }

  // One tile of c: rows x width, from packed a and packed or direct b.
  void tile(int64_t rows, int64_t width, int64_t depth, const T* a, const T* b, int64_t b_stride,
            T* c, int64_t c_stride, bool add) const {
    const auto kernel = loops_.kernel[rows - 1];
    if (width == loops_.columns) return kernel(depth, a, b, b_stride, c, c_stride, add);
    alignas(64) T edge[kMaxGemmRows * 64];
    kernel(depth, a, b, b_stride, edge, loops_.columns, false);
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < width; ++j) {
        const T value = edge[i * loops_.columns + j];
        c[i * c_stride + j] = add ? c[i * c_stride + j] + value : value;
      }
    }
  }

  // Few rows, b's columns contiguous: dot products.
  void run_dots() {
    T* a = reinterpret_cast<T*>(scratch(Scratch::launch, p_.m * p_.k * int64_t(sizeof(T))));
    load_(a, p_.a, {p_.m, p_.k, p_.k, 1, p_.a_row, p_.a_column});
    constexpr int64_t kColumns = 32;
    auto body = [&](int64_t begin, int64_t end) {
      T sums[kColumns];
      for (int64_t block = begin; block < end; ++block) {
        const int64_t j = block * kColumns, width = std::min(kColumns, p_.n - j);
        for (int64_t i = 0; i < p_.m; ++i) {
          loops_.dots(width, p_.k, a + i * p_.k, b_at(0, j), p_.b_column, sums);
          store_rows(sums, width, i, 1, j, width);
        }
      }
    };
    parallel(divide_up(p_.n, kColumns), work(), body);
  }

  // Few rows, b's rows contiguous: its panels are used where they lie, each about once.
  void run_direct() {
    T* a = reinterpret_cast<T*>(scratch(Scratch::launch, p_.m * p_.k * int64_t(sizeof(T))));
    for (int64_t i = 0; i < p_.m; i += loops_.rows) {
      pack_a(a + i * p_.k, i, std::min<int64_t>(loops_.rows, p_.m - i), 0, p_.k);
    }
    auto body = [&](int64_t begin, int64_t end) {
      for (int64_t panel = begin; panel < end; ++panel) run_direct_panel(a, panel);
    };
    parallel(divide_up(p_.n, loops_.columns), work(), body);
  }

  void run_direct_panel(const T* a, int64_t panel) {
    const int64_t j = panel * loops_.columns;
    const int64_t width = std::min<int64_t>(loops_.columns, p_.n - j);
    const T* b = b_at(0, j);
    int64_t b_stride = p_.b_row;
    if (width < loops_.columns) {
      T* packed =
          reinterpret_cast<T*>(scratch(Scratch::tile, p_.k * loops_.columns * int64_t(sizeof(T))));
      pack_b(packed, j, 0, p_.k);
      b = packed;
      b_stride = loops_.columns;
    }
    alignas(64) T block[kMaxGemmRows * 64];
    for (int64_t i = 0; i < p_.m; i += loops_.rows) {
      const int64_t rows = std::min<int64_t>(loops_.rows, p_.m - i);
      if (direct_c()) {
        T* c = reinterpret_cast<T*>(p_.c) + i * p_.c_row + j;
        tile(rows, width, p_.k, a + i * p_.k, b, b_stride, c, p_.c_row, false);
      } else {
        tile(rows, width, p_.k, a + i * p_.k, b, b_stride, block, width, false);
        store_rows(block, width, i, rows, j, width);
      }
    }
  }

  void run_packed() {
    for (int64_t j = 0; j < p_.n; j += kBlockColumns) {
      run_columns(j, std::min(kBlockColumns, p_.n - j));
    }
  }

  // Columns [column, column + width) of c, over all k.
  void run_columns(int64_t column, int64_t width) {
    const int64_t panels = divide_up(width, loops_.columns);
    const int64_t packed_bytes = padded(panels * loops_.columns * kDepth * int64_t(sizeof(T)));
    const int64_t c_bytes = direct_c() ? 0 : p_.m * width * int64_t(sizeof(T));
    char* room = scratch(Scratch::launch, packed_bytes + c_bytes);
    T* packed = reinterpret_cast<T*>(room);
    T* c = direct_c() ? reinterpret_cast<T*>(p_.c) + column
                      : reinterpret_cast<T*>(room + packed_bytes);
    const int64_t c_stride = direct_c() ? p_.c_row : width;
    for (int64_t k0 = 0; k0 < p_.k; k0 += kDepth) {
      const int64_t depth = std::min(kDepth, p_.k - k0);
      auto pack = [&](int64_t begin, int64_t end) {
        for (int64_t panel = begin; panel < end; ++panel) {
          pack_b(packed + panel * loops_.columns * depth, column + panel * loops_.columns, k0,
                 depth);
        }
      };
      parallel(panels, 16 * width * depth, pack);
      run_depth(packed, panels, width, k0, depth, c, c_stride);
    }
    if (!direct_c()) store_rows(c, width, 0, p_.m, column, width);
  }

  void run_depth(const T* packed, int64_t panels, int64_t width, int64_t k0, int64_t depth, T* c,
                 int64_t c_stride) {
    const int64_t row_blocks = divide_up(p_.m, kBlockRows);
    // Few blocks of rows: their columns are split too, so that all threads have work.
    const int64_t wanted = 4 * (1 + thread_pool().workers());
    const int64_t most = std::max<int64_t>(1, panels / 4);
    const int64_t groups = std::clamp(divide_up(wanted, row_blocks), int64_t(1), most);
    auto body = [&](int64_t begin, int64_t end) {
      int64_t packed_block = -1;
      T* a = reinterpret_cast<T*>(scratch(Scratch::tile, kBlockRows * kDepth * int64_t(sizeof(T))));
      for (int64_t task = begin; task < end; ++task) {
        const int64_t block = task / groups, group = task % groups;
        const int64_t row = block * kBlockRows, rows = std::min(kBlockRows, p_.m - row);
        if (block != packed_block) pack_block(a, row, rows, k0, depth);
        packed_block = block;
        for (int64_t panel = panels * group / groups; panel < panels * (group + 1) / groups;
             ++panel) {
          const int64_t j = panel * loops_.columns;
          run_panel(a, row, rows, depth, packed + j * depth,
                    std::min<int64_t>(loops_.columns, width - j), c + j, c_stride, k0 > 0);
        }
      }
    };
    parallel(row_blocks * groups, p_.m * width * depth, body);
  }

  void pack_block(T* a, int64_t row, int64_t rows, int64_t k0, int64_t depth) const {
    for (int64_t i = 0; i < rows; i += loops_.rows) {
      pack_a(a + i * depth, row + i, std::min<int64_t>(loops_.rows, rows - i), k0, depth);
    }
  }

  void run_panel(const T* a, int64_t row, int64_t rows, int64_t depth, const T* b, int64_t width,
                 T* c, int64_t c_stride, bool add) const {
    for (int64_t i = 0; i < rows; i += loops_.rows) {
      tile(std::min<int64_t>(loops_.rows, rows - i), width, depth, a + i * depth, b, loops_.columns,
           c + (row + i) * c_stride, c_stride, add);
    }
  }

  const Product& p_;
  const GemmLoops<T>& loops_;
  MoveLoop load_, store_;
  int size_;
  bool plain_;
};

}  // namespace

void multiply_floats(const Product& p) {
  switch (p.dtype) {
    case DType::f64: return FloatProduct<double>(p, gemms().f64, Storage::bytes8).run();
    case DType::f16: return FloatProduct<float>(p, gemms().f32, Storage::f16).run();
    case DType::bf16: return FloatProduct<float>(p, gemms().f32, Storage::bf16).run();
    default: return FloatProduct<float>(p, gemms().f32, Storage::bytes4).run();
  }
}

}  // namespace tessera::cpu
