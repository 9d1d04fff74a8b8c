#include "tessera/backend/cpu/kernels/attention_few.h"

#include <functional>
#include <limits>

#include "tessera/backend/cpu/scratch.h"
#include "tessera/base/thread_pool.h"

namespace tessera::cpu {

namespace {

constexpr int64_t kFewRows = 8;  // queries that share keys; from here on panels are as fast

template <class T>
class Few {
 public:
  Few(const AttentionCall& call, const AttentionTools<T>& tools, std::span<char* const> at)
      : c_(call), tools_(tools), run_(call, at), mask_(run_, tools) {
    rows_ = c_.heads_per_group() * c_.queries;
    const int64_t size = sizeof(T);
    queries_at_ = room_.add(rows_ * c_.depth * size);
    result_at_ = room_.add(rows_ * c_.values * size);
    lse_at_ = room_.add(rows_ * size);
    scores_at_ = room_.add(rows_ * c_.keys * size);
    extra_at_ = room_.add((mask_.masks() || mask_.drops() ? rows_ : 0) * c_.keys * size);
    draws_at_ = room_.add(mask_.drops() ? 12 * c_.keys : 0);
    // Keys are done with when values are read.
    copy_at_ = room_.add(c_.keys * std::max(c_.depth, c_.values) * size);
  }

  void run() const {
    auto body = [this](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) run_group(i / c_.groups, i % c_.groups);
    };
    const int64_t work = rows_ * c_.keys * (c_.depth + c_.values);
    const int64_t grain = std::max<int64_t>(1, kWorthAThread / work);
    thread_pool().parallel_for(c_.batch * c_.groups, grain, std::cref(body));
  }

 private:
  static constexpr int64_t kWorthAThread = 1 << 15;  // multiplications

  struct Work {
    char* room;
    int64_t b, group;
    int64_t keys;  // that can be seen

    T* at(int64_t offset) const { return reinterpret_cast<T*>(room + offset); }
  };

  void run_group(int64_t b, int64_t group) const {
    const Work work{scratch(Scratch::tile, room_.bytes()), b, group, run_.key_count(b)};
    T *s = work.at(scores_at_), *extra = work.at(extra_at_), *y = work.at(result_at_);
    const int64_t n = work.keys, head = group * c_.heads_per_group();
    score(work, head);
    for (int64_t i = 0; i < rows_; ++i) {
      restrict_row(b, head + i / c_.queries, i % c_.queries, n, s + i * c_.keys, extra);
    }
    tools_.loops.soften_rows(rows_, n, c_.keys, s, work.at(lse_at_));
    for (int64_t i = 0; mask_.drops() && i < rows_; ++i) {
      mask_.draw(b, head + i / c_.queries, i % c_.queries, 0, n, extra, work.room + draws_at_);
      tools_.loops.multiply(n, s + i * c_.keys, extra);
    }
    const Rows<T> v =
        tools_.rows_of(run_, c_.v, run_.matrix(c_.v, b, group), 0, n, work.at(copy_at_));
    tools_.multiply({rows_, n, c_.values, s, c_.keys, v.at, v.stride, y, c_.values, false});
    store(b * c_.groups + group, y, work.at(lse_at_));
  }

  void score(const Work& work, int64_t head) const {
    T* q = work.at(queries_at_);
    for (int64_t i = 0; i < c_.heads_per_group(); ++i) {
      tools_.copy_rows(run_, c_.q, run_.matrix(c_.q, work.b, head + i), 0, c_.queries,
                       q + i * c_.queries * c_.depth);
    }
    tools_.loops.scale(rows_ * c_.depth, q, T(c_.call.attrs.scalar));
    if (work.keys == 0) return;
    const Rows<T> k = tools_.rows_of(run_, c_.k, run_.matrix(c_.k, work.b, work.group), 0,
                                     work.keys, work.at(copy_at_));
    GemmTile<T> tile = {};
    tile.k = c_.depth;
    tile.a = q;
    tile.a_step = c_.depth;
    tile.b = k.at;
    tile.b_step = k.stride;
    tile.c = work.at(scores_at_);
    tile.c_step = c_.keys;
    tile.width = work.keys;
    tools_.gemm.dots(rows_, tile);
  }

  // The scores of one query and the first n keys.
  void restrict_row(int64_t b, int64_t head, int64_t query, int64_t n, T* s, T* extra) const {
    if (mask_.masks()) {
      mask_.load({b, head, query, 0, 1, n, 0, n, 1}, extra);
      mask_.apply(0, n, s, extra);
    }
    if (!c_.causal) return;
    const int64_t seen = std::clamp<int64_t>(query + c_.shift() + 1, 0, n);
    std::fill(s + seen, s + n, -std::numeric_limits<T>::infinity());
  }

  void store(int64_t index, const T* y, const T* row_lse) const {
    char* lse = run_.at[size_t(c_.outputs + 1)];
    if (lse != nullptr) std::copy_n(row_lse, rows_, reinterpret_cast<T*>(lse) + index * rows_);
    if (run_.at[size_t(c_.outputs)] == nullptr) return;
    const int64_t b = index / c_.groups, head = index % c_.groups * c_.heads_per_group();
    for (int64_t h = 0; h < c_.heads_per_group(); ++h) {
      tools_.store_rows(run_, c_.outputs, run_.matrix(c_.outputs, b, head + h), 0, c_.queries,
                        y + h * c_.queries * c_.values);
    }
  }

  const AttentionCall& c_;
  const AttentionTools<T>& tools_;
  AttentionRun run_;
  AttentionMask<T> mask_;
  int64_t rows_;
  Room room_;
  int64_t queries_at_, result_at_, lse_at_, scores_at_, extra_at_, draws_at_, copy_at_;
};

}  // namespace

template <class T>
bool has_few_queries(const AttentionCall& call, const AttentionTools<T>& tools) {
  // Values are read as whole vectors, and behind the last one there may be nothing.
  const bool reads_inside = tools.gemm.reads_exactly || call.values % tools.gemm.lanes == 0;
  return reads_inside && call.heads_per_group() * call.queries <= kFewRows;
}

template <class T>
void attend_few(const AttentionCall& call, const AttentionTools<T>& tools,
                std::span<char* const> at) {
  Few<T>(call, tools, at).run();
}

template bool has_few_queries(const AttentionCall&, const AttentionTools<float>&);
template bool has_few_queries(const AttentionCall&, const AttentionTools<double>&);
template void attend_few(const AttentionCall&, const AttentionTools<float>&,
                         std::span<char* const>);
template void attend_few(const AttentionCall&, const AttentionTools<double>&,
                         std::span<char* const>);

}  // namespace tessera::cpu
