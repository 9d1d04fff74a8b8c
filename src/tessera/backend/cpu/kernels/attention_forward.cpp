// attention: q (B, H, T, D), k (B, G, S, D), v (B, G, S, E) -> y (B, H, T, E), lse (B, H, T).
//
// Scores are kept transposed, a column per query, a block of keys at a time: s = k qᵀ, whose
// softmax over the keys so far is vertical, and of whose transpose y += sᵀ v reads rows. A panel of
// queries goes over all keys that its last one sees, each vector of them over those that its own
// last one sees. Queries of heads that share keys are columns of the same panels.
#include <cmath>
#include <functional>
#include <limits>

#include "tessera/backend/cpu/kernels/attention_few.h"
#include "tessera/backend/cpu/scratch.h"
#include "tessera/base/thread_pool.h"

namespace tessera::cpu {

namespace {

constexpr int64_t kBlockKeys = 192;
constexpr int64_t kTasks = 32;  // enough for as many threads

template <class T>
constexpr T kUnseen = -std::numeric_limits<T>::infinity();

// How many keys are seen by each vector of a panel's queries: those before may see fewer.
struct Limits {
  int64_t vectors, lanes;
  int64_t keys[kMaxGemmVectors] = {};
  int64_t most = 0;

  int64_t least() const { return *std::min_element(keys, keys + vectors); }

  void raise(int64_t v, int64_t limit) {
    keys[v] = std::max(keys[v], limit);
    most = std::max(most, limit);
  }

  // The same of the keys of a block that begins at `key`.
  Limits of_block(int64_t key, int64_t block) const {
    Limits part = {vectors, lanes};
    for (int64_t v = 0; v < vectors; ++v)
      part.raise(v, std::clamp<int64_t>(keys[v] - key, 0, block));
    return part;
  }

  // f(column, width, keys): the whole panel, or vectors where these differ.
  template <class F>
  void for_each_part(const F& f) const {
    if (least() == most) return f(0, vectors * lanes, most);
    for (int64_t v = 0; v < vectors; ++v) f(v * lanes, lanes, keys[v]);
  }
};

template <class T>
class Forward {
 public:
  Forward(const AttentionCall& call, const AttentionTools<T>& tools, std::span<char* const> at)
      : c_(call), tools_(tools), run_(call, at), mask_(run_, tools) {
    const int64_t size = sizeof(T), rows = c_.heads_per_group() * c_.queries;
    width_ = rows <= tools.gemm.lanes ? tools.gemm.lanes : tools.width();
    const int64_t w = width_;
    block_ = std::min(c_.keys, kBlockKeys);
    panels_ = (rows + w - 1) / w;
    keys_at_ = room_.add(tools.reads(call, call.k) ? 0 : c_.keys * c_.depth * size);
    reads_values_ = tools.reads_vectors(call, call.v);
    values_at_ = room_.add(reads_values_ ? 0 : c_.keys * c_.values * size);
    queries_at_ = room_.add(c_.depth * w * size);
    result_at_ = room_.add(c_.values * w * size);
    scores_at_ = room_.add(block_ * w * size);
    columns_at_ = room_.add(2 * w * size);
    extra_at_ = room_.add(block_ * w * size);
    draws_at_ = room_.add(w * block_ * size + 12 * block_);
    rows_at_ = room_.add(w * std::max(c_.depth, c_.values) * size);
    const int64_t read = c_.queries * c_.depth + c_.keys * (c_.depth + c_.values);
    // Where a task is a group, and a group one head.
    fetches_ = c_.batch * c_.groups >= kTasks && c_.heads == c_.groups &&
               read * tools.size() <= kMostAhead;
  }

  void run() {
    const int64_t groups = c_.batch * c_.groups;
    auto body = [this](int64_t begin, int64_t end) { run_panels(begin, end); };
    // A task that has to copy keys copies all it needs, so it is many panels: a group's, unless
    // there are few groups.
    const int64_t parts = (kTasks + groups - 1) / groups;
    const int64_t grain = (panels_ + parts - 1) / parts;
    thread_pool().parallel_for(groups * panels_, grain, std::cref(body));
  }

 private:
  // Columns of a panel that belong to one head.
  struct Run {
    int64_t column, count, head, query;
  };

  // One thread's place: a group and its keys.
  struct Work {
    char* room;
    Ahead* ahead;
    int64_t b = -1, group = -1;
    int64_t keys = 0;  // that can be seen
    Rows<T> k = {}, v = {};
    int64_t copied = 0;  // keys and values, where they have to be

    T* at(int64_t offset) const { return reinterpret_cast<T*>(room + offset); }
  };

  void run_panels(int64_t begin, int64_t end) const {
    Ahead ahead;
    Work work{scratch(Scratch::tile, room_.bytes()), &ahead};
    for (int64_t i = begin; i < end; ++i) {
      const int64_t pair = i / panels_, b = pair / c_.groups, group = pair % c_.groups;
      if (b != work.b || group != work.group) enter(work, b, group);
      run_panel(work, i % panels_ * width_);
    }
  }

  void enter(Work& work, int64_t b, int64_t group) const {
    work = {work.room, work.ahead, b, group, run_.key_count(b)};
    *work.ahead = {};
    if (fetches_) add_ahead(*work.ahead, b * c_.groups + group);
    work.k = tools_.rows_of(run_, c_.k, run_.matrix(c_.k, b, group), 0, 0, work.at(keys_at_));
    work.v = {work.at(values_at_), c_.values};
    if (reads_values_)
      work.v = tools_.rows_of(run_, c_.v, run_.matrix(c_.v, b, group), 0, 0, nullptr);
  }

  // What this group's panels write, and what the next group of this thread reads, presumably.
  void add_ahead(Ahead& ahead, int64_t pair) const {
    const int64_t next = pair + thread_pool().workers() + 1;
    tools_.add_rows(ahead, run_, c_.outputs, pair / c_.groups, pair % c_.groups);
    if (next >= c_.batch * c_.groups) return;
    for (const int operand : {c_.k, c_.v, c_.q}) {
      tools_.add_rows(ahead, run_, operand, next / c_.groups, next % c_.groups);
    }
  }

  template <class F>
  void for_each_run(int64_t group, int64_t row, const F& f) const {
    const int64_t end = std::min(row + width_, c_.heads_per_group() * c_.queries);
    for (int64_t at = row; at < end;) {
      const int64_t head = at / c_.queries, query = at % c_.queries;
      const int64_t count = std::min(end - at, c_.queries - query);
      f(Run{at - row, count, group * c_.heads_per_group() + head, query});
      at += count;
    }
  }

  // Queries of the panel that starts at `row`.
  int64_t rows_in(int64_t row) const {
    return std::min(width_, c_.heads_per_group() * c_.queries - row);
  }

  void run_panel(Work& work, int64_t row) const {
    const int64_t w = width_;
    T *top = work.at(columns_at_), *sum = top + w;
    std::fill_n(top, w, kUnseen<T>);
    std::fill_n(sum, w, T(0));
    if (rows_in(row) < w) std::fill_n(work.at(queries_at_), c_.depth * w, T(0));
    for_each_run(work.group, row, [&](const Run& r) { load_queries(work, r); });
    tools_.loops.scale(c_.depth * w, work.at(queries_at_), T(c_.call.attrs.scalar));
    const Limits limits = limits_of(work, row);
    copy_keys(work, limits.most);
    if (limits.most == 0) std::fill_n(work.at(result_at_), c_.values * w, T(0));
    for (int64_t key = 0; key < limits.most; key += block_) {
      run_block(work, row, key, limits.of_block(key, block_));
    }
    finish(work, row);
  }

  // How many keys each vector of the panel's queries sees.
  Limits limits_of(const Work& work, int64_t row) const {
    Limits limits = {width_ / tools_.gemm.lanes, tools_.gemm.lanes};
    for_each_run(work.group, row, [&](const Run& r) {
      for (int64_t v = r.column / limits.lanes; v < limits.vectors; ++v) {
        const int64_t end = std::min(r.count, (v + 1) * limits.lanes - r.column);
        limits.raise(v, c_.causal ? std::min(work.keys, r.query + end + c_.shift()) : work.keys);
        if (end == r.count) break;
      }
    });
    return limits;
  }

  void load_queries(const Work& work, const Run& r) const {
    const Rows<T> rows = tools_.rows_of(run_, c_.q, run_.matrix(c_.q, work.b, r.head), r.query,
                                        r.count, work.at(rows_at_));
    tools_.loops.transpose(r.count, c_.depth, work.at(queries_at_) + r.column, width_, rows.at,
                           rows.stride);
  }

  void copy_keys(Work& work, int64_t limit) const {
    if (limit <= work.copied) return;
    const int64_t first = work.copied, n = limit - first;
    if (!tools_.reads(c_, c_.k)) {
      tools_.copy_rows(run_, c_.k, run_.matrix(c_.k, work.b, work.group), first, n,
                       work.at(keys_at_) + first * c_.depth);
    }
    if (!reads_values_) {
      tools_.copy_rows(run_, c_.v, run_.matrix(c_.v, work.b, work.group), first, n,
                       work.at(values_at_) + first * c_.values);
    }
    work.copied = limit;
  }

  // The keys from `key` on that `limits` says.
  void run_block(const Work& work, int64_t row, int64_t key, const Limits& limits) const {
    const int64_t w = width_, n = limits.most, all = limits.least(), lanes = limits.lanes;
    T *s = work.at(scores_at_), *top = work.at(columns_at_), *y = work.at(result_at_);
    score(work, key, 0, all, 0, w);
    for (int64_t v = 0; v < limits.vectors; ++v) {
      score(work, key, all, limits.keys[v], v * lanes, lanes);
    }
    restrict_scores(work, row, key, n);
    limits.for_each_part([&](int64_t column, int64_t width, int64_t keys) {
      tools_.loops.fold_keys(keys, width, w, s + column, top + column, top + w + column,
                             key == 0 ? 0 : c_.values, y + column * c_.values);
    });
    if (mask_.drops()) drop(work, row, key, n);
    limits.for_each_part([&](int64_t column, int64_t width, int64_t keys) {
      const int64_t rows = std::min(width, rows_in(row) - column);
      if (rows <= 0) return;
      tools_.multiply_transposed({rows, keys, c_.values, s + column, w,
                                  work.v.at + key * work.v.stride, work.v.stride,
                                  y + column * c_.values, c_.values, key > 0, work.ahead});
    });
  }

  // The scores of keys [begin, end) from `key` on and `width` queries from a column on.
  void score(const Work& work, int64_t key, int64_t begin, int64_t end, int64_t column,
             int64_t width) const {
    if (begin >= end) return;
    tools_.multiply({end - begin, c_.depth, width, work.k.at + (key + begin) * work.k.stride,
                     work.k.stride, work.at(queries_at_) + column, width_,
                     work.at(scores_at_) + begin * width_ + column, width_, false, work.ahead});
  }

  void restrict_scores(const Work& work, int64_t row, int64_t key, int64_t n) const {
    const int64_t w = width_;
    T *s = work.at(scores_at_), *extra = work.at(extra_at_);
    if (mask_.masks()) {
      std::fill_n(extra, n * w, T(0));
      for_each_run(work.group, row, [&](const Run& r) {
        mask_.load({work.b, r.head, r.query, key, r.count, n, r.column, 1, w}, extra);
      });
      mask_.apply(0, n * w, s, extra);
    }
    if (!c_.causal) return;
    for_each_run(work.group, row, [&](const Run& r) {
      for (int64_t i = std::max<int64_t>(0, r.query + c_.shift() - key + 1); i < n; ++i) {
        const int64_t blind = std::min(r.count, key + i - c_.shift() - r.query);
        std::fill_n(s + i * w + r.column, blind, kUnseen<T>);
      }
    });
  }

  void drop(const Work& work, int64_t row, int64_t key, int64_t n) const {
    const int64_t w = width_;
    T *factors = work.at(extra_at_), *drawn = work.at(draws_at_);
    char* room = reinterpret_cast<char*>(drawn + w * block_);
    std::fill_n(drawn, w * n, T(0));
    for_each_run(work.group, row, [&](const Run& r) {
      for (int64_t j = 0; j < r.count; ++j) {
        mask_.draw(work.b, r.head, r.query + j, key, n, drawn + (r.column + j) * n, room);
      }
    });
    tools_.loops.transpose(w, n, factors, w, drawn, n);
    tools_.loops.multiply(n * w, work.at(scores_at_), factors);
  }

  void finish(const Work& work, int64_t row) const {
    const int64_t w = width_;
    T *top = work.at(columns_at_), *sum = top + w, *y = work.at(result_at_);
    for (int64_t j = 0; j < w; ++j) {
      const bool blind = top[j] == kUnseen<T> && sum[j] == 0;  // the sum of a row of NaN is NaN
      top[j] = blind ? T(0) : top[j] + std::log(sum[j]);
      sum[j] = blind ? T(0) : 1 / sum[j];
    }
    // Rows of a group lie one behind the other in lse.
    const int64_t n = rows_in(row), all = c_.heads_per_group() * c_.queries;
    const int64_t first = (work.b * c_.groups + work.group) * all + row;
    char* lse = run_.at[size_t(c_.outputs + 1)];
    if (lse != nullptr) std::copy_n(top, n, reinterpret_cast<T*>(lse) + first);
    if (run_.at[size_t(c_.outputs)] == nullptr) return;
    tools_.loops.scale_rows(n, c_.values, y, y, sum);
    for_each_run(work.group, row, [&](const Run& r) {
      tools_.store_rows(run_, c_.outputs, run_.matrix(c_.outputs, work.b, r.head), r.query, r.count,
                        y + r.column * c_.values);
    });
  }

  const AttentionCall& c_;
  const AttentionTools<T>& tools_;
  AttentionRun run_;
  AttentionMask<T> mask_;
  int64_t width_;  // of a panel
  bool reads_values_, fetches_;
  int64_t block_, panels_;
  Room room_;
  int64_t keys_at_, values_at_, queries_at_, result_at_, scores_at_, columns_at_, extra_at_,
      draws_at_, rows_at_;
};

template <class T>
class AttentionForward : public NamedKernel {
 public:
  explicit AttentionForward(const AttentionCall& call) : call_(call), tools_(call) {}

  void run(std::span<char* const> at) const override {
    few_ ? attend_few(call_, tools_, at) : Forward<T>(call_, tools_, at).run();
  }

 private:
  AttentionCall call_;
  AttentionTools<T> tools_;
  bool few_ = has_few_queries(call_, tools_);
};

}  // namespace

std::unique_ptr<NamedKernel> make_attention(const KernelCall& call) {
  const AttentionCall c(call, 0, 3);
  const Shape rows = {c.batch, c.heads, c.queries};
  expect_shape(call, c.outputs, "y", {c.batch, c.heads, c.queries, c.values});
  expect_dtype(call, c.outputs, "y", c.dtype);
  expect_shape(call, c.outputs + 1, "lse", rows);
  expect_dtype(call, c.outputs + 1, "lse", compute_type(c.dtype));
  const View& lse = call.operands[size_t(c.outputs + 1)].view;
  if (!is_contiguous(lse)) fail("attention: expected a packed lse, got strides ", lse.strides);
  if (c.dtype == DType::f64) return std::make_unique<AttentionForward<double>>(c);
  return std::make_unique<AttentionForward<float>>(c);
}

}  // namespace tessera::cpu
