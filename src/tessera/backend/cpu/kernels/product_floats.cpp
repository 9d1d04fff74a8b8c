// Blocked matrix product. A large c is cut into many tasks that share what all threads packed
// before, so that a thread which is held up has fewer of them; a small one into tasks that share
// nothing. Each element of c is summed over k in one fixed order, whatever the tasks and threads.
#include <algorithm>
#include <cstring>
#include <functional>

#include "tessera/backend/cpu/isa.h"
#include "tessera/backend/cpu/kernels/product.h"
#include "tessera/backend/cpu/kernels/product_blocks.h"
#include "tessera/backend/cpu/scratch.h"
#include "tessera/base/thread_pool.h"

namespace tessera::cpu {

namespace {

// Where the ways of computing cross over (bench/gemm.cpp).
constexpr int64_t kFewTiles = 6;           // of rows: up to here, b is read where it lies
constexpr int64_t kFewPanels = 4;          // of columns, side by side: the same
constexpr int64_t kFarDepth = 16;          // of blocks of such a b that no cache holds, if a is
constexpr int64_t kFarDepthOfTiles = 128;  // one tile high, or more
constexpr int64_t kStreamedRows = 2;    // up to here, the hardware fetches ahead better than we do,
constexpr int64_t kStreamedDepth = 8;   // from as many rows of b as it can follow
constexpr int64_t kFewColumns = 256;    // up to here, columns of a are read where they lie
constexpr int64_t kFewDotRows = 64;     // up to here, dot products beat packing a transposed b
constexpr int64_t kWorthDots = 64;      // terms of a dot product
constexpr int64_t kWorthSwapping = 32;  // terms of a sum, where c^T = b^T a^T has better tiles
constexpr int64_t kPiece = 512;         // rows and columns of sums that are converted at once

struct Region {  // of c
  int64_t row, rows, column, columns;
};

template <class T>
struct Output {
  T* at;  // a region's element (0, 0)
  int64_t step;
};

// Rows of a as the kernels take them.
template <class T>
struct Left {
  const T* at;
  int64_t step;       // GemmTile::a_step
  int64_t tile_step;  // from a tile's first element to the next one's
  bool by_rows;
};

template <class T>
class FloatProduct {
 public:
  FloatProduct(const Product& p, const GemmLoops<T>& loops, Storage storage)
      : p_(p),
        loops_(loops),
        load_(cpu::loops().load[int(storage)]),
        store_(cpu::loops().store[int(storage)]),
        size_(size_of(p.dtype)),
        plain_(storage == Storage::bytes4 || storage == Storage::bytes8) {
    if (p_.n <= loops_.lanes && p_.m > p_.n && p_.k >= kWorthSwapping) p_ = transposed(p_);
    if (p_.m == 1) p_.a_row = 1;
    if (p_.k == 1) p_.a_column = p_.b_row = 1;
    if (p_.n == 1) p_.b_column = 1;
  }

  void run() {
    if (p_.m == 0 || p_.n == 0) return;
    if (p_.k == 0) return clear();
    const ProductShape s = shape();
    const int64_t parts = depth_parts(s);
    if (parts > 1) return run_depth_parts(parts);
    plan(s);
    if (const SharedBlocks shared = shared_blocks(s); shared.rows > 0) return run_sharing(shared);
    const Grid grid = choose_grid(s, 1 + thread_pool().workers());
    auto task = [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t row = i % grid.row_parts * grid.rows;
        const int64_t column = i / grid.row_parts * grid.columns;
        run_region(
            {row, std::min(grid.rows, p_.m - row), column, std::min(grid.columns, p_.n - column)});
      }
    };
    const int64_t tasks = grid.row_parts * grid.column_parts;
    if (tasks == 1) return task(0, 1);
    thread_pool().parallel_for(tasks, 1, std::cref(task));
  }

 private:
  ProductShape shape() const {
    return {p_.m, p_.n, p_.k, loops_.rows, loops_.columns, int64_t(sizeof(T))};
  }

  // A function of the product's shape and strides: it decides how elements are summed.
  void plan(const ProductShape& s) {
    blocks_ = choose_blocks(s);
    dots_ = plain_ && p_.b_row == 1 && (p_.b_column != 1 || p_.n == 1) && p_.m <= kFewDotRows &&
            p_.k >= std::max(kWorthDots, 8 * p_.m);
    const bool short_rows = p_.b_row > 0 && p_.b_row <= kFewPanels * loops_.columns;
    direct_b_ = plain_ && p_.b_column == 1 && (p_.m <= kFewTiles * loops_.rows || short_rows);
    const int64_t b_bytes = p_.k * p_.n * size_, cache = cache_sizes().second;
    far_b_ = direct_b_ && !short_rows && b_bytes > 4 * cache;
    if (far_b_ && p_.m <= kStreamedRows) {
      blocks_.depth = std::min(kStreamedDepth, blocks_.depth);
    } else if (far_b_ && b_bytes > 16 * cache) {
      blocks_.depth = std::min(p_.m <= loops_.rows ? kFarDepth : kFarDepthOfTiles, blocks_.depth);
    }
    direct_c_ = plain_ && p_.c_column == 1;
    direct_rows_ = plain_ && p_.a_column == 1;
    direct_columns_ = plain_ && p_.a_row == 1 && p_.n <= kFewColumns;
  }

  const T* a_at(int64_t i, int64_t k) const {
    return reinterpret_cast<const T*>(p_.a) + i * p_.a_row + k * p_.a_column;
  }
  const T* b_at(int64_t k, int64_t j) const {
    return reinterpret_cast<const T*>(p_.b) + k * p_.b_row + j * p_.b_column;
  }
  char* c_at(int64_t i, int64_t j) const { return p_.c + (i * p_.c_row + j * p_.c_column) * size_; }

  void clear() {
    const T zero = 0;
    store_(p_.c, &zero, {p_.m, p_.n, p_.c_row, p_.c_column, 0, 0});
  }

  // Few tiles and a large k: partial sums over parts of k, added up in their order.
  void run_depth_parts(int64_t parts) {
    const int64_t size = p_.m * p_.n;
    T* sums = reinterpret_cast<T*>(scratch(Scratch::launch, parts * size * int64_t(sizeof(T))));
    auto task = [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t first = p_.k * i / parts, last = p_.k * (i + 1) / parts;
        FloatProduct part = *this;
        part.p_.k = last - first;
        part.p_.a += first * p_.a_column * size_;
        part.p_.b += first * p_.b_row * size_;
        part.plan(part.shape());
        part.sum_region({0, p_.m, 0, p_.n}, {sums + i * size, p_.n});
      }
    };
    thread_pool().parallel_for(parts, 1, std::cref(task));
    for (int64_t i = 1; i < parts; ++i) {
      for (int64_t j = 0; j < size; ++j) sums[j] += sums[i * size + j];
    }
    store_(p_.c, sums, {p_.m, p_.n, p_.c_row, p_.c_column, p_.n, 1});
  }

  // How large products are cut where tasks share what is packed; no rows: they do not.
  SharedBlocks shared_blocks(const ProductShape& s) const {
    if (dots_ || direct_b_ || !direct_c_) return {};
    return choose_shared_blocks(s, blocks_, 1 + thread_pool().workers());
  }

  // Elements that the packed rows of a task take: whole cache lines, so that b begins at one.
  int64_t room_of_rows(const SharedBlocks& shared) const {
    constexpr int64_t kLine = 64 / int64_t(sizeof(T));
    return round_up((shared.task_rows + loops_.rows) * blocks_.depth, kLine);
  }

  void run_sharing(const SharedBlocks& shared) {
    const int64_t a_room = room_of_rows(shared);
    const int64_t row_tasks = divide_up(std::min(p_.m, shared.rows), shared.task_rows);
    const int64_t columns = round_up(std::min(p_.n, blocks_.columns), loops_.columns);
    T* const a = reinterpret_cast<T*>(scratch(
        Scratch::launch, (row_tasks * a_room + columns * blocks_.depth) * int64_t(sizeof(T))));
    T* const b = a + row_tasks * a_room;
    for (int64_t j = 0; j < p_.n; j += blocks_.columns) {
      for (int64_t k0 = 0; k0 < p_.k; k0 += blocks_.depth) {
        for (int64_t i = 0; i < p_.m; i += shared.rows) {
          sum_sharing({i, std::min(shared.rows, p_.m - i), j, std::min(blocks_.columns, p_.n - j)},
                      k0, shared, a, b);
        }
      }
    }
  }

  // All threads pack rows of a, and for the first rows panels of b; then they multiply.
  void sum_sharing(const Region& r, int64_t k0, const SharedBlocks& shared, T* a, T* b) const {
    const int64_t depth = std::min(blocks_.depth, p_.k - k0);
    const int64_t a_room = room_of_rows(shared);
    const int64_t row_tasks = divide_up(r.rows, shared.task_rows);
    const auto left_of = [&](int64_t task) {
      const int64_t row = task * shared.task_rows;
      return left_panels(a + task * a_room, r.row + row, std::min(shared.task_rows, r.rows - row),
                         k0, depth);
    };
    const int64_t panels = r.row == 0 ? divide_up(r.columns, loops_.columns) : 0;
    auto pack = [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t column = (i - row_tasks) * loops_.columns;
        if (i < row_tasks) {
          left_of(i);
        } else {
          pack_b(b + column * depth, r.column + column, k0, depth);
        }
      }
    };
    thread_pool().parallel_for(row_tasks + panels, 1, std::cref(pack));
    const bool is_packed = !direct_rows_ && !direct_columns_;
    auto task = [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t at = i % row_tasks, row = at * shared.task_rows;
        const int64_t column = i / row_tasks * shared.task_columns;
        const Left<T> left = is_packed
                                 ? Left<T>{a + at * a_room, loops_.rows, loops_.rows * depth, false}
                                 : left_of(at);
        sum_panels({r.row + row, std::min(shared.task_rows, r.rows - row), r.column + column,
                    std::min(shared.task_columns, r.columns - column)},
                   k0, left, b + column * depth);
      }
    };
    const int64_t column_tasks = divide_up(r.columns, shared.task_columns);
    thread_pool().parallel_for(row_tasks * column_tasks, 1, std::cref(task));
  }

  // A block of c by packed panels of b, one after the other.
  void sum_panels(const Region& r, int64_t k0, const Left<T>& left, const T* b) const {
    GemmTile<T> tile = {};
    tile.add = k0 > 0;
    tile.b_step = loops_.columns;
    tile.c_step = p_.c_row;
    for (int64_t j = 0; j < r.columns; j += loops_.columns) {
      tile.k = std::min(blocks_.depth, p_.k - k0);
      tile.b = b + j * tile.k;
      tile.c = reinterpret_cast<T*>(c_at(r.row, r.column + j));
      tile.width = std::min<int64_t>(loops_.columns, r.columns - j);
      multiply(left, r.rows, tile);
    }
  }

  // By kernels that write c, or in pieces whose sums are converted.
  void run_region(const Region& region) const {
    if (direct_c_) {
      return sum_region(region, {reinterpret_cast<T*>(c_at(region.row, region.column)), p_.c_row});
    }
    for (int64_t j = 0; j < region.columns; j += kPiece) {
      for (int64_t i = 0; i < region.rows; i += kPiece) {
        const Region piece = {region.row + i, std::min(kPiece, region.rows - i), region.column + j,
                              std::min(kPiece, region.columns - j)};
        T* sums = room(piece).c;
        sum_region(piece, {sums, piece.columns});
        store_(c_at(piece.row, piece.column), sums,
               {piece.rows, piece.columns, p_.c_row, p_.c_column, piece.columns, 1});
      }
    }
  }

  void sum_region(const Region& region, const Output<T>& out) const {
    if (dots_) return sum_dots(region, out);
    if (direct_b_) return sum_direct(region, out);
    sum_packed(region, out);
  }

  // This thread's memory for the packed operands of a region, and for its sums.
  struct Room {
    T *a, *b, *c;
  };
  Room room(const Region& r) const {
    const int64_t rows = direct_b_ ? r.rows : std::min(r.rows, blocks_.rows);
    const int64_t columns = direct_b_ ? 1 : std::min(r.columns, blocks_.columns);
    // A tile of even height leaves rows of its memory unused: hence one tile more.
    const int64_t a =
        dots_ ? r.rows * p_.k : (round_up(rows, loops_.rows) + loops_.rows) * blocks_.depth;
    const int64_t b = dots_ ? 0 : round_up(columns, loops_.columns) * blocks_.depth;
    const int64_t c = direct_c_ ? 0 : r.rows * r.columns;
    auto bytes = [](int64_t count) { return padded(count * int64_t(sizeof(T))); };
    char* at = scratch(Scratch::tile, bytes(a) + bytes(b) + bytes(c));
    return {reinterpret_cast<T*>(at), reinterpret_cast<T*>(at + bytes(a)),
            reinterpret_cast<T*>(at + bytes(a) + bytes(b))};
  }

  // Both operands contiguous along k.
  void sum_dots(const Region& r, const Output<T>& out) const {
    GemmTile<T> tile = {};
    tile.k = p_.k;
    tile.a = a_at(r.row, 0);
    tile.a_step = p_.a_row;
    tile.b = b_at(0, r.column);
    tile.b_step = p_.b_column;
    tile.c = out.at;
    tile.c_step = out.step;
    tile.width = r.columns;
    if (p_.a_column != 1) {
      T* packed = room(r).a;
      load_(packed, tile.a, {r.rows, p_.k, p_.k, 1, p_.a_row, p_.a_column});
      tile.a = packed;
      tile.a_step = p_.k;
    }
    loops_.dots(r.rows, tile);
  }

  // b is used where it lies; one that no cache holds, in strips whose sums stay in the first-level
  // cache while b's rows stream by.
  void sum_direct(const Region& r, const Output<T>& out) const {
    const Room memory = room(r);
    const int64_t near = cache_sizes().first / 2 / (r.rows * int64_t(sizeof(T)));
    const int64_t strip =
        far_b_ && p_.m > kStreamedRows
            ? round_up(std::max<int64_t>(near, 16 * loops_.columns), loops_.columns)
            : r.columns;
    for (int64_t j = 0; j < r.columns; j += strip) {
      for (int64_t k0 = 0; k0 < p_.k; k0 += blocks_.depth) {
        sum_strip({r.row, r.rows, r.column + j, std::min(strip, r.columns - j)}, k0, memory,
                  {out.at + j, out.step});
      }
    }
  }

  void sum_strip(const Region& r, int64_t k0, const Room& memory, const Output<T>& out) const {
    GemmTile<T> tile = {};
    tile.k = std::min(blocks_.depth, p_.k - k0);
    tile.add = k0 > 0;
    tile.c_step = out.step;
    tile.ahead_step = p_.b_row;
    const Left<T> left = left_panels(memory.a, r.row, r.rows, k0, tile.k);
    for (int64_t j = 0; j < r.columns; j += tile.width) {
      tile.width = direct_width(r.rows, r.columns - j);
      tile.c = out.at + j;
      tile.b = b_at(k0, r.column + j);
      tile.b_step = p_.b_row;
      tile.ahead = far_b_ && p_.m > kStreamedRows ? tile.b + tile.width : nullptr;
      if (tile.width % loops_.lanes != 0 && !loops_.reads_exactly) {
        pack_b(memory.b, r.column + j, k0, tile.k);
        tile.b = memory.b;
        tile.b_step = loops_.columns;
      }
      multiply(left, r.rows, tile);
    }
  }

  // Of the next panel, when `rest` columns are left: whole vectors unless kernels read exactly.
  int64_t direct_width(int64_t rows, int64_t rest) const {
    const int64_t lanes = loops_.lanes;
    const int64_t most = tile_height(rows) == rows ? loops_.widest[rows - 1] : loops_.vectors;
    const int64_t whole = loops_.reads_exactly ? divide_up(rest, lanes) : rest / lanes;
    const int64_t vectors = whole >= most ? most : std::min<int64_t>(whole, loops_.vectors);
    return vectors == 0 ? rest : std::min(rest, vectors * lanes);
  }

  void sum_packed(const Region& r, const Output<T>& out) const {
    const Room memory = room(r);
    for (int64_t j = 0; j < r.columns; j += blocks_.columns) {
      const int64_t columns = std::min(blocks_.columns, r.columns - j);
      for (int64_t k0 = 0; k0 < p_.k; k0 += blocks_.depth) {
        for (int64_t i = 0; i < r.rows; i += blocks_.rows) {
          const Region block = {r.row + i, std::min(blocks_.rows, r.rows - i), r.column + j,
                                columns};
          sum_block(block, k0, i == 0, memory, {out.at + i * out.step + j, out.step});
        }
      }
    }
  }

  // A block of rows times all panels of b, which are packed just before the first block uses them
  // and fetched while it uses the panel before.
  void sum_block(const Region& r, int64_t k0, bool first, const Room& memory,
                 const Output<T>& out) const {
    GemmTile<T> tile = {};
    tile.k = std::min(blocks_.depth, p_.k - k0);
    tile.add = k0 > 0;
    tile.b_step = loops_.columns;
    tile.c_step = out.step;
    tile.ahead_step = p_.b_row;
    const Left<T> left = left_panels(memory.a, r.row, r.rows, k0, tile.k);
    for (int64_t j = 0; j < r.columns; j += loops_.columns) {
      T* b = memory.b + j * tile.k;
      if (first) pack_b(b, r.column + j, k0, tile.k);
      if (first && plain_ && p_.b_column == 1) tile.ahead = b_at(k0, r.column + j + loops_.columns);
      // Columns that lie one after the other: the next panel is one run of memory.
      if (first && plain_ && p_.b_row == 1 && p_.b_column == tile.k) {
        tile.ahead = b_at(k0, r.column + j + loops_.columns);
        tile.ahead_step = loops_.lanes;
        tile.ahead_run = loops_.lanes * tile.k;
      }
      tile.b = b;
      tile.c = out.at + j;
      tile.width = std::min<int64_t>(loops_.columns, r.columns - j);
      multiply(left, r.rows, tile);
    }
  }

  // Of the tiles that `rows` are cut into: even ones, because one of a row or two would keep few of
  // the adders busy.
  int64_t tile_height(int64_t rows) const { return divide_up(rows, divide_up(rows, loops_.rows)); }

  // All rows of `left` times the panel of b in `tile`.
  void multiply(const Left<T>& left, int64_t rows, GemmTile<T> tile) const {
    const int64_t height = tile_height(rows), vectors = divide_up(tile.width, loops_.lanes);
    const auto& kernels = left.by_rows ? loops_.by_rows : loops_.by_columns;
    tile.a_step = left.step;
    // Several tiles take turns in fetching ahead: one alone could ask for more than is under way.
    const bool turns = height < rows;
    if (tile.ahead != nullptr) tile.ahead_vectors = turns ? 1 : vectors;
    tile.a = left.at;
    for (int64_t i = 0, t = 0; i < rows; i += height, ++t) {
      kernels[std::min(height, rows - i) - 1][vectors - 1](tile);
      tile.a += left.tile_step;
      tile.c += height * tile.c_step;
      if (tile.ahead_vectors > 0) {
        tile.ahead += tile.ahead_run > 0 ? tile.ahead_run : loops_.lanes;
      }
      if (t + 1 == vectors) tile.ahead_vectors = 0;
    }
  }

  // Rows [row, row + rows) of a, k in [k0, k0 + depth), packed into `to` unless they can be read
  // where they lie.
  Left<T> left_panels(T* to, int64_t row, int64_t rows, int64_t k0, int64_t depth) const {
    const int64_t height = tile_height(rows);
    if (direct_rows_) return {a_at(row, k0), p_.a_row, height * p_.a_row, true};
    if (direct_columns_) return {a_at(row, k0), p_.a_column, height, false};
    const Left<T> left = {to, loops_.rows, loops_.rows * depth, false};
    if (plain_ && p_.a_row == 1) {
      // Rows behind the last do no harm, and whole tiles are faster to copy.
      const int64_t length = std::min(round_up(rows, height) + loops_.rows - height, p_.m - row);
      loops_.copy_a({to, a_at(row, k0), p_.a_column, depth, length, height});
      return left;
    }
    for (int64_t i = 0; i < rows; i += height, to += left.tile_step) {
      const int64_t count = std::min<int64_t>(loops_.rows, p_.m - row - i);
      if (plain_ && p_.a_column == 1) {
        loops_.transpose_a({to, a_at(row + i, k0), p_.a_row, count, depth, 0});
      } else {
        load_(to, p_.a + ((row + i) * p_.a_row + k0 * p_.a_column) * size_,
              {depth, count, loops_.rows, 1, p_.a_column, p_.a_row});
      }
    }
    return left;
  }

  // A panel of b from `column` on as [depth][loops_.columns], with zeros behind the last column
  // where kernels read them.
  void pack_b(T* to, int64_t column, int64_t k0, int64_t depth) const {
    const int64_t width = std::min<int64_t>(loops_.columns, p_.n - column);
    const T* from = b_at(k0, column);
    if (plain_ && p_.b_column == 1) {
      return loops_.copy_b({to, from, p_.b_row, depth, width, loops_.columns});
    }
    if (plain_ && p_.b_row == 1) {
      return loops_.transpose_b({to, from, p_.b_column, width, depth, 0});
    }
    if (width < loops_.columns) std::memset(to, 0, size_t(depth * loops_.columns) * sizeof(T));
    load_(to, p_.b + (k0 * p_.b_row + column * p_.b_column) * size_,
          {depth, width, loops_.columns, 1, p_.b_row, p_.b_column});
  }

  Product p_;
  const GemmLoops<T>& loops_;
  MoveLoop load_, store_;
  int size_;
  bool plain_;  // elements are in memory what they are in registers

  Blocks blocks_ = {};
  bool dots_ = false;
  bool direct_b_ = false, far_b_ = false, direct_c_ = false;
  bool direct_rows_ = false, direct_columns_ = false;  // of a
};

}  // namespace

void multiply_floats(const Product& p) {
  switch (p.dtype) {
    case DType::f64: return FloatProduct<double>(p, gemms().f64, Storage::bytes8).run();
    case DType::f16: return FloatProduct<float>(p, gemms().f32, Storage::f16).run();
    case DType::bf16:
      if (multiply_bf16(p)) return;
      return FloatProduct<float>(p, gemms().f32, Storage::bf16).run();
    default: return FloatProduct<float>(p, gemms().f32, Storage::bytes4).run();
  }
}

}  // namespace tessera::cpu
