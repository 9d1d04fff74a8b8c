// Blocked matrix product. A large c is cut into many tasks that share what all threads packed
// before, so that a thread which is held up has fewer of them; a small one into tasks that share
// nothing. Each element of c is summed over k in one fixed order, whatever the tasks and threads.
#include <algorithm>
#include <functional>

#include "tessera/backend/cpu/isa.h"
#include "tessera/backend/cpu/kernels/epilogue.h"
#include "tessera/backend/cpu/kernels/product_tiles.h"
#include "tessera/backend/cpu/scratch.h"
#include "tessera/base/thread_pool.h"

namespace tessera::cpu {

namespace {

constexpr int64_t kPiece = 512;     // rows and columns of sums that are converted at once
constexpr int64_t kNearPanels = 4;  // of a task: what they gave is in the second-level cache
constexpr int64_t kRowsAhead = 8;   // of b

template <class T>
struct Output {
  T* at;  // a region's element (0, 0)
  int64_t step;
};

template <class T>
class FloatProduct : ProductTiles<T> {
  using Tiles = ProductTiles<T>;
  using Tiles::a_at;
  using Tiles::b_at;
  using Tiles::blocks_;
  using Tiles::c_at;
  using Tiles::direct_b_;
  using Tiles::direct_c_;
  using Tiles::direct_columns_;
  using Tiles::direct_width;
  using Tiles::dots_;
  using Tiles::gapless_b_;
  using Tiles::left_panels;
  using Tiles::load_;
  using Tiles::loops_;
  using Tiles::multiply;
  using Tiles::p_;
  using Tiles::pack_b;
  using Tiles::packs_rows;
  using Tiles::panels_ahead;
  using Tiles::plain_;
  using Tiles::plan;
  using Tiles::reads_rows_ahead;
  using Tiles::shape;
  using Tiles::size_;
  using Tiles::store_;
  using Tiles::streams_b;
  using Tiles::swapped_;

 public:
  FloatProduct(const Product& p, const GemmLoops<T>& loops, Storage storage)
      : Tiles(p, loops, storage) {}

  // c, and what `epilogue`, unless it is null, makes of it.
  void run(const Epilogue* epilogue) {
    compute(epilogue);
    if (epilogue != nullptr && epilogue_ == nullptr) finish_all(*epilogue);
  }

 private:
  void compute(const Epilogue* epilogue) {
    if (p_.m == 0 || p_.n == 0) return;
    if (p_.k == 0) return clear();
    const ProductShape s = shape();
    const int64_t parts = depth_parts(s);
    if (parts > 1) return run_depth_parts(parts);
    plan(s);
    if (direct_c_ && !swapped_) epilogue_ = epilogue;
    if (const SharedBlocks shared = shared_blocks(s); shared.rows > 0) return run_sharing(shared);
    const Grid grid = choose_grid(s, 1 + thread_pool().workers());
    auto task = [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t down = i % grid.rows.count, across = i / grid.rows.count;
        run_region({grid.rows.begin(down), grid.rows.size(down), grid.columns.begin(across),
                    grid.columns.size(across)});
      }
    };
    if (grid.tasks() == 1) return run_region({0, p_.m, 0, p_.n});
    thread_pool().parallel_for(grid.tasks(), 1, std::cref(task));
  }

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

  // How large products are cut where tasks share what is packed; no rows: they do not. Of two
  // threads each needs all of one operand and half of the other: to pack them costs less than to
  // fetch what the other thread packed.
  SharedBlocks shared_blocks(const ProductShape& s) const {
    const int64_t threads = 1 + thread_pool().workers();
    if (dots_ || direct_b_ || !direct_c_ || (threads == 2 && packs_rows())) return {};
    return choose_shared_blocks(s, blocks_, threads);
  }

  // Elements that the packed rows of a task take: whole cache lines, so that b begins at one.
  int64_t room_of_rows(const SharedBlocks& shared) const {
    if (!packs_rows()) return 0;
    constexpr int64_t kLine = 64 / int64_t(sizeof(T));
    return round_up((shared.task_rows + loops_.rows) * blocks_.depth, kLine);
  }

  // Part of a product that tasks share: all that some rows of a and columns of b give for some k.
  struct Round {
    int64_t row, column, k0;
    T *a, *b;  // packed
  };

  bool advance(Round& round, const SharedBlocks& shared) const {
    if ((round.row += shared.rows) < p_.m) return true;
    round.row = 0;
    if ((round.k0 += blocks_.depth) < p_.k) return true;
    round.k0 = 0;
    return (round.column += blocks_.columns) < p_.n;
  }

  // While a round is multiplied the next one is packed, so that threads wait for each other once a
  // round.
  void run_sharing(const SharedBlocks& shared) {
    const int64_t most_rows = std::min(p_.m, shared.rows);
    const int64_t a_size = divide_up(most_rows, shared.task_rows) * room_of_rows(shared);
    const int64_t columns = round_up(std::min(p_.n, blocks_.columns), loops_.columns);
    const int64_t b_size = columns * blocks_.depth;
    T* const room =
        reinterpret_cast<T*>(scratch(Scratch::launch, 2 * (a_size + b_size) * int64_t(sizeof(T))));
    T *spare_a = room + a_size, *spare_b = room + 2 * a_size + b_size;
    Round round = {0, 0, 0, room, room + 2 * a_size};
    auto pack_first = [&](int64_t begin, int64_t end) { pack(round, shared, begin, end); };
    thread_pool().parallel_for(pack_tasks(round, shared), 1, std::cref(pack_first));
    for (bool more = true; more;) {
      Round next = round;
      more = advance(next, shared);
      std::swap(next.a, spare_a);
      if (next.row == 0) std::swap(next.b, spare_b);
      sum_round(round, more ? &next : nullptr, shared);
      round = next;
    }
  }

  int64_t rows_of(const Round& round, const SharedBlocks& shared) const {
    return std::min(shared.rows, p_.m - round.row);
  }
  int64_t columns_of(const Round& round) const {
    return std::min(blocks_.columns, p_.n - round.column);
  }
  int64_t depth_of(const Round& round) const { return std::min(blocks_.depth, p_.k - round.k0); }

  // Rows of a, unless they are read where they lie, and panels of b, which rounds of other rows
  // find packed. They take turns: a thread that packs the first of them multiplies the first rows
  // and columns, and much of what it reads is in its own cache.
  int64_t row_packs(const Round& round, const SharedBlocks& shared) const {
    return packs_rows() ? divide_up(rows_of(round, shared), shared.task_rows) : 0;
  }
  int64_t pack_tasks(const Round& round, const SharedBlocks& shared) const {
    return row_packs(round, shared) +
           (round.row == 0 ? divide_up(columns_of(round), loops_.columns) : 0);
  }

  void pack(const Round& round, const SharedBlocks& shared, int64_t begin, int64_t end) const {
    const int64_t rows = row_packs(round, shared), all = pack_tasks(round, shared);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = i * rows / all;
      if ((i + 1) * rows / all > row) {
        left_of(round, shared, row);
        continue;
      }
      const int64_t column = (i - row) * loops_.columns, depth = depth_of(round);
      pack_b(round.b + column * depth, round.column + column, round.k0, depth);
    }
  }

  Left<T> left_of(const Round& round, const SharedBlocks& shared, int64_t task) const {
    const EvenParts rows = row_parts(round, shared);
    return left_panels(round.a + task * room_of_rows(shared), round.row + rows.begin(task),
                       rows.size(task), round.k0, depth_of(round));
  }

  EvenParts row_parts(const Round& round, const SharedBlocks& shared) const {
    const int64_t rows = rows_of(round, shared);
    return {rows, loops_.rows, divide_up(rows, shared.task_rows)};
  }

  // Each task multiplies a block, and packs its share of the next round.
  void sum_round(const Round& round, const Round* next, const SharedBlocks& shared) const {
    const EvenParts rows = row_parts(round, shared);
    const int64_t all_columns = columns_of(round), depth = depth_of(round);
    const EvenParts columns = {all_columns, loops_.columns,
                               divide_up(all_columns, shared.task_columns)};
    const int64_t tasks = rows.count * columns.count;
    const int64_t packs = next == nullptr ? 0 : pack_tasks(*next, shared);
    auto task = [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t at = shared.down_first ? i % rows.count : i / columns.count;
        const int64_t across = shared.down_first ? i / rows.count : i % columns.count;
        const Left<T> left = packs_rows() ? Left<T>{round.a + at * room_of_rows(shared),
                                                    loops_.rows, loops_.rows * depth, false}
                                          : left_of(round, shared, at);
        const Region block = {round.row + rows.begin(at), rows.size(at),
                              round.column + columns.begin(across), columns.size(across)};
        sum_panels(block, round.k0, left, round.b + columns.begin(across) * depth);
        if (packs > 0) pack(*next, shared, packs * i / tasks, packs * (i + 1) / tasks);
      }
    };
    thread_pool().parallel_for(tasks, 1, std::cref(task));
  }

  // A block of c by packed panels of b, one after the other; behind some of them, what follows on
  // the columns they gave.
  void sum_panels(const Region& r, int64_t k0, const Left<T>& left, const T* b) const {
    GemmTile<T> tile = {};
    tile.k = std::min(blocks_.depth, p_.k - k0);
    tile.add = k0 > 0;
    tile.b_step = loops_.columns;
    tile.c_step = p_.c_row;
    const int64_t strip = kNearPanels * loops_.columns;
    for (int64_t start = 0; start < r.columns; start += strip) {
      const Region near = {r.row, r.rows, r.column + start, std::min(strip, r.columns - start)};
      for (int64_t j = 0; j < near.columns; j += loops_.columns) {
        tile.b = b + (start + j) * tile.k;
        tile.c = reinterpret_cast<T*>(c_at(near.row, near.column + j));
        tile.width = std::min<int64_t>(loops_.columns, near.columns - j);
        multiply(left, r.rows, tile);
      }
      if (k0 + tile.k == p_.k) finish(near);
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
    if (!dots_ && !direct_b_) return sum_packed(region, out);
    dots_ ? sum_dots(region, out) : sum_direct(region, out);
    finish(region);
  }

  // Elements of c that are complete and where they belong.
  void finish(const Region& r) const {
    if (epilogue_ != nullptr) finish_block(*epilogue_, r);
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
    if (streams_b()) {
      return loops_.few_rows({r.rows, p_.k, a_at(r.row, 0), p_.a_row, p_.a_column,
                              b_at(0, r.column), p_.b_row, out.at, out.step, r.columns});
    }
    const Room memory = room(r);
    const int64_t near = cache_sizes().first / 2 / (r.rows * int64_t(sizeof(T)));
    const int64_t strip =
        panels_ahead() > 0 ? round_up(std::max<int64_t>(near, 16 * loops_.columns), loops_.columns)
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
    const Left<T> left = left_panels(memory.a, r.row, r.rows, k0, tile.k);
    for (int64_t j = 0, panel = 0; j < r.columns; j += tile.width, ++panel) {
      tile.width = direct_width(r.rows, r.columns - j);
      tile.c = out.at + j;
      tile.b = b_at(k0, r.column + j);
      tile.b_step = p_.b_row;
      fetch_ahead(tile, k0, panel);
      if (tile.width % loops_.lanes != 0 && !loops_.reads_exactly) {
        pack_b(memory.b, r.column + j, k0, tile.k);
        tile.b = memory.b;
        tile.b_step = loops_.columns;
      }
      multiply(left, r.rows, tile);
    }
  }

  // What is needed soon, while a panel of b is used where it lies.
  void fetch_ahead(GemmTile<T>& tile, int64_t k0, int64_t panel) const {
    tile.ahead = nullptr;
    tile.ahead_step = p_.b_row;
    tile.ahead_run = tile.ahead_all = 0;
    if (panels_ahead() > 0) tile.ahead = tile.b + panels_ahead() * tile.width;
    if (reads_rows_ahead()) tile.ahead = tile.b + kRowsAhead * p_.b_row;
    const int64_t next = k0 + tile.k;
    if (!gapless_b_ || next + tile.k > p_.k) return;
    if (panel == 0) fetch_run(tile, b_at(next, 0), p_.n);
    if (panel == 1 && direct_columns_ && p_.a_column == p_.m) fetch_run(tile, a_at(0, next), p_.m);
  }

  // One run of memory, of k rows of so many elements, tile by tile.
  void fetch_run(GemmTile<T>& tile, const T* from, int64_t elements) const {
    tile.ahead = from;
    tile.ahead_run = loops_.lanes * tile.k;
    tile.ahead_all = divide_up(elements, loops_.lanes);
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
          if (k0 + blocks_.depth >= p_.k) finish(block);
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
        fetch_run(tile, b_at(k0, r.column + j + loops_.columns), loops_.columns);
      }
      tile.b = b;
      tile.c = out.at + j;
      tile.width = std::min<int64_t>(loops_.columns, r.columns - j);
      multiply(left, r.rows, tile);
    }
  }

  const Epilogue* epilogue_ = nullptr;  // of blocks as they are completed
};

}  // namespace

void multiply_floats(const Product& p, const Epilogue* epilogue) {
  TESSERA_ASSERT(epilogue == nullptr || !is_half(p.dtype));
  switch (p.dtype) {
    case DType::f64: return FloatProduct<double>(p, gemms().f64, Storage::bytes8).run(epilogue);
    case DType::f16: return FloatProduct<float>(p, gemms().f32, Storage::f16).run(nullptr);
    case DType::bf16:
      if (multiply_bf16(p)) return;
      return FloatProduct<float>(p, gemms().f32, Storage::bf16).run(nullptr);
    default: return FloatProduct<float>(p, gemms().f32, Storage::bytes4).run(epilogue);
  }
}

int64_t epilogue_group(DType dtype) {
  return dtype == DType::f64 ? gemms().f64.rows : gemms().f32.rows;
}

}  // namespace tessera::cpu
