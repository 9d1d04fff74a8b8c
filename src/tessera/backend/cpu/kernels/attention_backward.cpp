// attention_backward: g (B, H, T, E), q, k, v, y, lse -> dq, dk, dv.
//
// A task is a head and every n-th block of its keys. With p = exp(q kᵀ - lse) recomputed a panel of
// keys and a block of queries at a time, a column per key, and ds = p · (g vᵀ - Σ g y):
//   dv += pᵀ g    dk += dsᵀ q    dq += ds k
// Which tasks there are follows from the shape alone, and where several add to the same output
// their parts are summed in a fixed order afterwards.
#include <functional>
#include <limits>

#include "tessera/backend/cpu/kernels/attention.h"
#include "tessera/backend/cpu/scratch.h"
#include "tessera/base/thread_pool.h"

namespace tessera::cpu {

namespace {

constexpr int64_t kBlockRows = 96;   // queries
constexpr int64_t kBlockPanels = 4;  // of keys
constexpr int64_t kTasks = 16;       // enough for as many threads, where the keys allow

constexpr int kG = 0, kY = 4, kLse = 5;  // operands

template <class T>
constexpr T kUnseen = -std::numeric_limits<T>::infinity();

template <class T>
class Backward {
 public:
  Backward(const AttentionCall& call, const AttentionTools<T>& tools, std::span<char* const> at)
      : c_(call), tools_(tools), run_(call, at), mask_(run_, tools) {
    rows_ = std::min(c_.queries, kBlockRows);
    keys_ = kBlockPanels * tools.width();
    // A line more than the keys need, for rows a power of two apart meet in few lines of the cache.
    stride_ = keys_ + 64 / int64_t(sizeof(T));
    const int64_t blocks = (c_.keys + keys_ - 1) / keys_, heads = c_.batch * c_.heads;
    chunks_ = std::min(blocks, (kTasks + heads - 1) / heads);
    padded_depth_ = (c_.depth + tools.gemm.lanes - 1) / tools.gemm.lanes * tools.gemm.lanes;
    reads_keys_ = tools.reads_vectors(call, call.k);
    reads_g_ = tools.reads_vectors(call, kG);
    for (int i = 0; i < 3; ++i) {
      wanted_[i] = run_.at[size_t(c_.outputs + i)] != nullptr;
      packed_[i] = tools.packed(call, c_.outputs + i);
    }
    const int64_t read = c_.queries * (c_.depth + 2 * c_.values) + c_.keys * (c_.depth + c_.values);
    fetches_ = chunks_ == 1 && read * tools.size() <= kMostAhead;
    plan_room();
  }

  void run() {
    const int64_t heads = c_.batch * c_.heads, size = sizeof(T);
    // Of dq a part per chunk, of dk and dv one per head: where these are several.
    Room parts;
    if (chunks_ > 1) parts.add(chunks_ * heads * c_.queries * c_.depth * size);
    const int64_t dk_at = parts.bytes();
    if (c_.heads_per_group() > 1) parts.add(heads * c_.keys * c_.depth * size);
    const int64_t dv_at = parts.bytes();
    if (c_.heads_per_group() > 1) parts.add(heads * c_.keys * c_.values * size);
    char* room = parts.bytes() == 0 ? nullptr : scratch(Scratch::launch, parts.bytes());
    dq_parts_ = reinterpret_cast<T*>(room);
    dk_parts_ = reinterpret_cast<T*>(room + dk_at);
    dv_parts_ = reinterpret_cast<T*>(room + dv_at);
    auto body = [this](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) run_task(i / chunks_, i % chunks_);
    };
    thread_pool().parallel_for(heads * chunks_, 1, std::cref(body));
    if (chunks_ > 1) sum_parts(0, c_.heads, chunks_, dq_parts_);
    if (c_.heads_per_group() > 1) {
      sum_parts(1, c_.groups, c_.heads_per_group(), dk_parts_);
      sum_parts(2, c_.groups, c_.heads_per_group(), dv_parts_);
    }
  }

 private:
  struct Work {
    char* room;
    int64_t b, head, chunk;
    Ahead* ahead;
    int64_t keys = 0;        // that can be seen
    Rows<T> g = {}, k = {};  // k: of the present block
    T* dq = nullptr;
    T *dk = nullptr, *dv = nullptr;  // of the present block's keys

    T* at(int64_t offset) const { return reinterpret_cast<T*>(room + offset); }
  };

  // A panel of n keys, `offset` keys into their block, and a block's rows, which are queries.
  struct Panel {
    int64_t row, rows;
    int64_t key, offset, n;
  };

  bool has_parts() const { return c_.heads_per_group() > 1; }
  // Of dk and dv: where the output, or this head's part of it, is what sums need.
  bool sums_in_place(int output) const { return packed_[output] || has_parts(); }

  void plan_room() {
    const int64_t size = sizeof(T), w = tools_.width(), t = c_.queries;
    queries_at_ = room_.add(t * c_.depth * size);
    g_at_ = room_.add(reads_g_ ? 0 : t * c_.values * size);
    lse_at_ = room_.add(t * size);
    along_at_ = room_.add(t * size);
    dq_at_ = room_.add(packed_[0] || chunks_ > 1 ? 0 : t * c_.depth * size);
    k_panels_at_ = room_.add(keys_ * c_.depth * size);
    v_panels_at_ = room_.add(keys_ * c_.values * size);
    k_rows_at_ = room_.add(reads_keys_ ? 0 : keys_ * padded_depth_ * size);
    dk_at_ = room_.add(sums_in_place(1) ? 0 : keys_ * c_.depth * size);
    dv_at_ = room_.add(sums_in_place(2) ? 0 : keys_ * c_.values * size);
    p_at_ = room_.add(rows_ * stride_ * size);
    ds_at_ = room_.add(rows_ * stride_ * size);
    extra_at_ = room_.add(rows_ * stride_ * size);
    draws_at_ = room_.add(12 * w);
    copy_at_ = room_.add(std::max(rows_, keys_) * std::max(c_.depth, c_.values) * size);
  }

  // The parts of each matrix of an output, of which a sequence has n, are added up in their order.
  void sum_parts(int output, int64_t n, int64_t parts, T* from) const {
    if (!wanted_[output]) return;
    const int operand = c_.outputs + output;
    const Shape& shape = c_.call.operands[size_t(operand)].view.shape;
    const int64_t rows = shape[2], count = rows * shape[3];
    auto body = [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        T* sum = from + i * parts * count;
        for (int64_t p = 1; p < parts; ++p) tools_.loops.add(count, sum, sum + p * count);
        tools_.store_rows(run_, operand, run_.matrix(operand, i / n, i % n), 0, rows, sum);
      }
    };
    thread_pool().parallel_for(c_.batch * n, 1, std::cref(body));
  }

  void run_task(int64_t index, int64_t chunk) const {
    Ahead ahead;
    Work work{scratch(Scratch::tile, room_.bytes()), index / c_.heads, index % c_.heads, chunk,
              &ahead};
    work.keys = run_.key_count(work.b);
    load_queries(work);
    if (fetches_) add_ahead(ahead, index);
    for (int64_t key = chunk * keys_; key < c_.keys; key += chunks_ * keys_) {
      const int64_t n = std::clamp<int64_t>(work.keys - key, 0, keys_);
      const int64_t all = std::min(keys_, c_.keys - key);
      work.dk = clear_keys(work, 1, key, all, c_.depth);
      work.dv = clear_keys(work, 2, key, all, c_.values);
      if (n > 0) run_keys(work, key, n);
      store_keys(work, 1, key, all);
      store_keys(work, 2, key, all);
    }
    store_queries(work);
  }

  // What this task writes at its end, and what the next one of this thread reads, presumably.
  void add_ahead(Ahead& ahead, int64_t index) const {
    const int64_t next = index + thread_pool().workers() + 1;
    const auto add = [&](int operand, int64_t pair, int64_t sharing) {
      tools_.add_rows(ahead, run_, operand, pair / c_.heads, pair % c_.heads / sharing);
    };
    for (const int output : {1, 2, 0}) {
      if (!has_parts() || output == 0) add(c_.outputs + output, index, 1);
    }
    if (next >= c_.batch * c_.heads) return;
    for (const int operand : {c_.q, kG, kY}) add(operand, next, 1);
    for (const int operand : {c_.k, c_.v}) add(operand, next, c_.heads_per_group());
  }

  void load_queries(Work& work) const {
    const int64_t t = c_.queries;
    const char *g = run_.matrix(kG, work.b, work.head), *y = run_.matrix(kY, work.b, work.head);
    work.g = {work.at(g_at_), c_.values};
    if (reads_g_) work.g = tools_.rows_of(run_, kG, g, 0, t, nullptr);
    for (int64_t row = 0; row < t; row += rows_) {
      const int64_t n = std::min(rows_, t - row);
      T* q = work.at(queries_at_) + row * c_.depth;
      tools_.copy_rows(run_, c_.q, run_.matrix(c_.q, work.b, work.head), row, n, q);
      tools_.loops.scale(n * c_.depth, q, T(c_.call.attrs.scalar));
      if (!reads_g_) tools_.copy_rows(run_, kG, g, row, n, work.at(g_at_) + row * c_.values);
      const Rows<T> part = tools_.rows_of(run_, kY, y, row, n, work.at(copy_at_));
      tools_.loops.dots(n, c_.values, work.at(along_at_) + row, work.g.at + row * work.g.stride,
                        work.g.stride, part.at, part.stride);
    }
    tools_.copy(work.at(lse_at_), run_.matrix(kLse, work.b, work.head),
                {1, t, 0, 1, 0, c_.stride(kLse, 2)});
    work.dq = dq_of(work);
    if (wanted_[0]) std::fill_n(work.dq, t * c_.depth, T(0));
  }

  // Where the gradient of this head's queries is summed up: the output where its rows are packed.
  T* dq_of(const Work& work) const {
    const int64_t index = work.b * c_.heads + work.head, count = c_.queries * c_.depth;
    if (chunks_ > 1) return dq_parts_ + (index * chunks_ + work.chunk) * count;
    if (!packed_[0]) return work.at(dq_at_);
    return reinterpret_cast<T*>(run_.matrix(c_.outputs, work.b, work.head));
  }

  // n keys from `key` on, with all queries that see some of them.
  void run_keys(Work& work, int64_t key, int64_t n) const {
    pack_keys(work, key, n);
    const int64_t first = c_.causal ? std::max<int64_t>(0, key - c_.shift()) : 0;
    for (int64_t row = first / rows_ * rows_; row < c_.queries; row += rows_) {
      run_block(work, row, std::min(rows_, c_.queries - row), key, n);
    }
  }

  void pack_keys(Work& work, int64_t key, int64_t n) const {
    const int64_t w = tools_.width(), group = work.head / c_.heads_per_group();
    T* room = work.at(copy_at_);
    const Rows<T> k = tools_.rows_of(run_, c_.k, run_.matrix(c_.k, work.b, group), key, n, room);
    work.k = k;
    if (!reads_keys_) {
      work.k = {work.at(k_rows_at_), padded_depth_};
      tools_.copy(work.at(k_rows_at_), k.at, {n, c_.depth, padded_depth_, 1, k.stride, 1});
    }
    for (int64_t i = 0; i < n; i += w) {
      tools_.pack_panel(work.at(k_panels_at_) + i * c_.depth, {k.at + i * k.stride, k.stride},
                        std::min(w, n - i), c_.depth);
    }
    const Rows<T> v = tools_.rows_of(run_, c_.v, run_.matrix(c_.v, work.b, group), key, n, room);
    for (int64_t i = 0; i < n; i += w) {
      tools_.pack_panel(work.at(v_panels_at_) + i * c_.values, {v.at + i * v.stride, v.stride},
                        std::min(w, n - i), c_.values);
    }
  }

  // `rows` queries from `row` on and n keys from `key` on.
  void run_block(const Work& work, int64_t row, int64_t rows, int64_t key, int64_t n) const {
    const int64_t w = tools_.width();
    for (int64_t i = 0; i < n; i += w) {
      const Panel panel = {row, rows, key + i, i, std::min(w, n - i)};
      if (first_row(panel, 0) < rows) run_panel(work, panel);
    }
    if (!wanted_[0]) return;
    // By tiles, each over the keys that it sees: of others it has no ds.
    for (int64_t i = 0; i < rows; i += tools_.rows()) {
      const int64_t tile = std::min(tools_.rows(), rows - i);
      const int64_t last = c_.causal ? row + i + tile - 1 + c_.shift() : c_.keys;
      const int64_t depth = std::min(n, last - key + 1);
      if (depth <= 0) continue;
      tools_.multiply({tile, depth, c_.depth, work.at(ds_at_) + i * stride_, stride_, work.k.at,
                       work.k.stride, work.dq + (row + i) * c_.depth, c_.depth, true, work.ahead});
    }
  }

  // The first row of the block that sees keys of vector v of the panel: rows before are left out.
  int64_t first_row(const Panel& panel, int64_t v) const {
    if (!c_.causal) return 0;
    const int64_t key = panel.key + v * tools_.gemm.lanes;
    return std::clamp<int64_t>(key - c_.shift() - panel.row, 0, panel.rows);
  }

  void run_panel(const Work& work, const Panel& panel) const {
    const int64_t lanes = tools_.gemm.lanes, last = (panel.n - 1) / lanes;
    for (int64_t v = 0; v <= last; ++v) {
      const int64_t first = first_row(panel, v), whole = first / tools_.rows() * tools_.rows();
      const int64_t end = v < last ? first_row(panel, v + 1) : panel.rows;
      if (first < end) weigh(work, panel, first, end - first, (v + 1) * lanes);
      // The tile of dq that the first row is in reads these, too.
      T* ds = work.at(ds_at_) + panel.offset + v * lanes;
      for (int64_t i = whole; i < first; ++i) std::fill_n(ds + i * stride_, lanes, T(0));
    }
    if (first_row(panel, last) == first_row(panel, 0)) return add_keys(work, panel, 0, panel.n);
    for (int64_t i = 0; i < panel.n; i += lanes) {
      add_keys(work, panel, i, std::min(lanes, panel.n - i));
    }
  }

  // p and ds of `count` rows of the block from `first` on, and the first `width` keys of the panel.
  void weigh(const Work& work, const Panel& panel, int64_t first, int64_t count,
             int64_t width) const {
    const int64_t w = tools_.width(), query = panel.row + first, n = std::min(panel.n, width);
    T* p = work.at(p_at_) + first * stride_;
    T* ds = work.at(ds_at_) + first * stride_ + panel.offset;
    tools_.multiply({count, c_.depth, width, work.at(queries_at_) + query * c_.depth, c_.depth,
                     work.at(k_panels_at_) + panel.offset * c_.depth, w, p, stride_, false,
                     work.ahead});
    tools_.multiply({count, c_.values, width, work.g.at + query * work.g.stride, work.g.stride,
                     work.at(v_panels_at_) + panel.offset * c_.values, w, ds, stride_, false,
                     work.ahead});
    restrict_scores(work, p, query, count, panel.key, n, width);
    const T* kept = mask_.drops() ? draw(work, query, count, panel.key, n, width) : nullptr;
    tools_.loops.weigh_rows(count, width, stride_, p, ds, work.at(lse_at_) + query,
                            work.at(along_at_) + query, kept);
  }

  // The gradients of n keys from the panel's key i on.
  void add_keys(const Work& work, const Panel& panel, int64_t i, int64_t n) const {
    const int64_t first = first_row(panel, i / tools_.gemm.lanes), count = panel.rows - first;
    const int64_t query = panel.row + first, key = panel.offset + i;
    if (count == 0) return;
    if (wanted_[2]) {
      tools_.multiply_transposed({n, count, c_.values, work.at(p_at_) + first * stride_ + i,
                                  stride_, work.g.at + query * work.g.stride, work.g.stride,
                                  work.dv + key * c_.values, c_.values, true, work.ahead});
    }
    if (wanted_[1]) {
      tools_.multiply_transposed({n, count, c_.depth, work.at(ds_at_) + first * stride_ + key,
                                  stride_, work.at(queries_at_) + query * c_.depth, c_.depth,
                                  work.dk + key * c_.depth, c_.depth, true, work.ahead});
    }
  }

  // The scores s of `count` queries from `first` on and n keys from `key` on, in rows of `width`.
  void restrict_scores(const Work& work, T* s, int64_t first, int64_t count, int64_t key, int64_t n,
                       int64_t width) const {
    T* extra = work.at(extra_at_);
    if (mask_.masks()) {
      mask_.load({work.b, work.head, first, key, count, n, 0, stride_, 1}, extra);
      for (int64_t i = 0; i < count; ++i) mask_.apply(i * stride_, n, s, extra);
    }
    for (int64_t i = 0; c_.causal && i < count; ++i) {
      const int64_t seen = first + i + c_.shift() - key + 1;
      if (seen >= width) break;
      std::fill(s + i * stride_ + std::max<int64_t>(0, seen), s + i * stride_ + width, kUnseen<T>);
    }
  }

  const T* draw(const Work& work, int64_t first, int64_t count, int64_t key, int64_t n,
                int64_t width) const {
    T* extra = work.at(extra_at_);
    for (int64_t i = 0; i < count; ++i) {
      T* factors = extra + i * stride_;
      std::fill(factors + n, factors + width, T(0));
      mask_.draw(work.b, work.head, first + i, key, n, factors, work.room + draws_at_);
    }
    return extra;
  }

  // Where the gradient of keys is summed up: this head's part of output 1 or 2, the output itself
  // where its rows are packed, or this thread's room.
  T* keys_at(const Work& work, int output, int64_t key, int64_t columns) const {
    if (has_parts()) {
      const int64_t first = (work.b * c_.heads + work.head) * c_.keys + key;
      return (output == 1 ? dk_parts_ : dv_parts_) + first * columns;
    }
    if (!packed_[output]) return work.at(output == 1 ? dk_at_ : dv_at_);
    return reinterpret_cast<T*>(run_.matrix(c_.outputs + output, work.b, work.head)) +
           key * columns;
  }

  T* clear_keys(const Work& work, int output, int64_t key, int64_t n, int64_t columns) const {
    if (!wanted_[output]) return nullptr;
    T* sums = keys_at(work, output, key, columns);
    std::fill_n(sums, n * columns, T(0));
    return sums;
  }

  void store_keys(const Work& work, int output, int64_t key, int64_t n) const {
    if (!wanted_[output] || sums_in_place(output)) return;
    const int operand = c_.outputs + output;
    tools_.store_rows(run_, operand, run_.matrix(operand, work.b, work.head), key, n,
                      output == 1 ? work.dk : work.dv);
  }

  void store_queries(const Work& work) const {
    if (!wanted_[0]) return;
    char* matrix = run_.matrix(c_.outputs, work.b, work.head);
    for (int64_t row = 0; row < c_.queries; row += rows_) {
      const int64_t n = std::min(rows_, c_.queries - row);
      T* dq = work.dq + row * c_.depth;
      tools_.loops.scale(n * c_.depth, dq, T(c_.call.attrs.scalar));
      if (packed_[0] || chunks_ > 1) continue;
      tools_.store_rows(run_, c_.outputs, matrix, row, n, dq);
    }
  }

  const AttentionCall& c_;
  const AttentionTools<T>& tools_;
  AttentionRun run_;
  AttentionMask<T> mask_;
  int64_t rows_, keys_, stride_, chunks_, padded_depth_;
  bool reads_keys_, reads_g_, fetches_;
  bool wanted_[3];
  bool packed_[3];  // outputs whose rows sums can be made in
  T *dq_parts_ = nullptr, *dk_parts_ = nullptr, *dv_parts_ = nullptr;
  Room room_;
  int64_t queries_at_, g_at_, lse_at_, along_at_, dq_at_, k_panels_at_, v_panels_at_, k_rows_at_,
      dk_at_, dv_at_, p_at_, ds_at_, extra_at_, draws_at_, copy_at_;
};

template <class T>
class AttentionBackward : public NamedKernel {
 public:
  explicit AttentionBackward(const AttentionCall& call) : call_(call), tools_(call) {}

  void run(std::span<char* const> at) const override { Backward<T>(call_, tools_, at).run(); }

 private:
  AttentionCall call_;
  AttentionTools<T> tools_;
};

}  // namespace

std::unique_ptr<NamedKernel> make_attention_backward(const KernelCall& call) {
  const AttentionCall c(call, 1, 6);
  const Shape y = {c.batch, c.heads, c.queries, c.values};
  expect_shape(call, kG, "a gradient", y);
  expect_dtype(call, kG, "a gradient", c.dtype);
  expect_shape(call, kY, "y", y);
  expect_dtype(call, kY, "y", c.dtype);
  expect_shape(call, kLse, "lse", {c.batch, c.heads, c.queries});
  expect_dtype(call, kLse, "lse", compute_type(c.dtype));
  for (int i = 0; i < 3; ++i) {
    expect_shape(call, c.outputs + i, "a result", call.operands[size_t(c.q + i)].view.shape);
    expect_dtype(call, c.outputs + i, "a result", c.dtype);
  }
  if (c.dtype == DType::f64) return std::make_unique<AttentionBackward<double>>(c);
  return std::make_unique<AttentionBackward<float>>(c);
}

}  // namespace tessera::cpu
