#include <algorithm>
#include <set>

#include "tessera/compile/passes.h"

namespace tessera {

namespace {

// Whether bad data can make it fail: it reads or writes where data say.
bool may_throw(const KernelNode& node) {
  if (!node.call.ir) return node.in_place == 0 && node.in_place_output == 0;  // the update ops
  const auto& insts = node.call.ir->insts;
  return std::any_of(insts.begin(), insts.end(), [](const IrInst& i) { return i.indexed; });
}

constexpr int kLookahead = 64;  // ready kernels looked at for one that frees memory

class Scheduler {
 public:
  explicit Scheduler(KernelGraph& graph)
      : graph_(graph), producer_(graph.buffers.size(), -1), readers_(graph.buffers.size()) {
    for (size_t k = 0; k < graph.kernels.size(); ++k) {
      const KernelNode& node = graph.kernels[k];
      for (size_t i = 0; i < node.buffers.size(); ++i) {
        if (node.buffers[i] < 0) continue;
        if (i < first_output(node)) {
          readers_[size_t(node.buffers[i])].push_back(int(k));
        } else {
          producer_[size_t(node.buffers[i])] = int(k);
        }
      }
    }
  }

  void run() {
    donate();
    reorder(
        list_schedule([this](const std::set<std::pair<int, int>>& ready) { return pick(ready); }));
  }

 private:
  // Lets an assign write straight into its Var's storage where every other reader of the old value
  // can run before. An order that puts such writers last shows which can; the edges added then all
  // follow that order, so they close no cycle.
  void donate() {
    std::vector<char> writes(graph_.kernels.size(), 0);
    for (const auto& assign : graph_.assigns) {
      const int writer = producer_[size_t(assign.buffer)];
      if (writer >= 0) writes[size_t(writer)] = 1;  // else nobody computes it: it has no elements
    }
    const std::vector<int> order = list_schedule([&](const std::set<std::pair<int, int>>& ready) {
      for (const auto& entry : ready) {
        if (!writes[size_t(entry.second)]) return entry;
      }
      return *ready.begin();
    });
    std::vector<int> position(order.size());
    for (size_t i = 0; i < order.size(); ++i) position[size_t(order[i])] = int(i);
    std::vector<int> throwing;
    for (size_t k = 0; k < graph_.kernels.size(); ++k) {
      if (may_throw(graph_.kernels[k])) throwing.push_back(int(k));
    }
    for (auto& assign : graph_.assigns) {
      const int writer = producer_[size_t(assign.buffer)];
      if (writer < 0) continue;
      if (graph_.buffers[size_t(assign.buffer)].kind != BufferKind::temporary) continue;
      if (!can_donate(assign.external, assign.buffer, writer, position)) continue;
      for (const int reader : readers_[size_t(assign.external)]) {
        if (reader != writer) graph_.after[size_t(writer)].push_back(reader);
      }
      // A step that fails on its data should fail before it has replaced anything.
      for (const int k : throwing) {
        const bool before = position[size_t(k)] < position[size_t(writer)];
        if (before) graph_.after[size_t(writer)].push_back(k);
      }
      rename(assign.buffer, assign.external);
      assign.buffer = assign.external;
    }
  }

  bool can_donate(int external, int buffer, int writer, const std::vector<int>& position) const {
    for (const int reader : readers_[size_t(external)]) {
      if (position[size_t(reader)] > position[size_t(writer)]) return false;
    }
    const KernelNode& node = graph_.kernels[size_t(writer)];
    size_t output = first_output(node);
    while (node.buffers[output] != buffer) ++output;
    for (size_t i = 0; i < first_output(node); ++i) {
      if (node.buffers[i] == external && !may_share(node, i, output)) return false;
    }
    return true;
  }

  // From now on the new value lives in the storage of `to`.
  void rename(int from, int to) {
    for (KernelNode& node : graph_.kernels) {
      std::replace(node.buffers.begin(), node.buffers.end(), from, to);
    }
  }

  // Kahn's algorithm over (late, index) pairs; `choose` picks among the ready.
  template <class Choose>
  std::vector<int> list_schedule(Choose choose) {
    const size_t n = graph_.kernels.size();
    std::vector<std::vector<int>> successors(n);
    std::vector<int> missing(n, 0);
    auto edge = [&](int from, int to) {
      successors[size_t(from)].push_back(to);
      ++missing[size_t(to)];
    };
    for (size_t b = 0; b < graph_.buffers.size(); ++b) {
      if (producer_[b] < 0) continue;
      for (const int reader : readers_[b]) edge(producer_[b], reader);
    }
    for (size_t k = 0; k < n; ++k) {
      for (const int before : graph_.after[k]) edge(before, int(k));
    }
    remaining_.assign(graph_.buffers.size(), 0);
    for (size_t b = 0; b < graph_.buffers.size(); ++b) remaining_[b] = int(readers_[b].size());
    std::set<std::pair<int, int>> ready;
    auto make_ready = [&](int k) { ready.emplace(graph_.kernels[size_t(k)].late, k); };
    for (size_t k = 0; k < n; ++k) {
      if (missing[k] == 0) make_ready(int(k));
    }
    std::vector<int> order;
    while (!ready.empty()) {
      const std::pair<int, int> next = choose(ready);
      ready.erase(next);
      order.push_back(next.second);
      for_each_input(next.second, [this](int b) { --remaining_[size_t(b)]; });
      for (const int to : successors[size_t(next.second)]) {
        if (--missing[size_t(to)] == 0) make_ready(to);
      }
    }
    TESSERA_ASSERT(order.size() == n);
    return order;
  }

  // The first ready kernel that does not make memory grow, or next to nothing compared with the
  // first in program order; else that one. Recomputations only when nothing else can run.
  std::pair<int, int> pick(const std::set<std::pair<int, int>>& ready) {
    const int64_t negligible = growth(ready.begin()->second) / 64;
    int looked_at = 0;
    for (const auto& entry : ready) {
      if (entry.first || ++looked_at > kLookahead) break;
      if (growth(entry.second) <= std::max<int64_t>(negligible, 0)) return entry;
    }
    return *ready.begin();
  }

  int64_t growth(int k) {
    int64_t bytes = 0;
    const KernelNode& node = graph_.kernels[size_t(k)];
    for (size_t i = first_output(node); i < node.buffers.size(); ++i) {
      const auto here = node.buffers.begin() + ptrdiff_t(i);
      const bool counted = std::find(node.buffers.begin(), here, *here) != here;  // they may share
      if (*here >= 0 && is_temporary(*here) && !counted) bytes += size(*here);
    }
    for_each_input(k, [&](int b) {
      if (remaining_[size_t(b)] == 1 && is_temporary(b)) bytes -= size(b);
    });
    return bytes;
  }

  // Once per reading operand, as readers_ counts.
  template <class F>
  void for_each_input(int k, F f) {
    const KernelNode& node = graph_.kernels[size_t(k)];
    for (size_t i = 0; i < first_output(node); ++i) f(node.buffers[i]);
  }

  bool is_temporary(int b) const { return graph_.buffers[size_t(b)].kind == BufferKind::temporary; }
  int64_t size(int b) const { return graph_.buffers[size_t(b)].bytes; }

  void reorder(const std::vector<int>& order) {
    std::vector<int> position(order.size());
    for (size_t i = 0; i < order.size(); ++i) position[size_t(order[i])] = int(i);
    std::vector<KernelNode> kernels;
    std::vector<std::vector<int>> after(order.size());
    for (size_t i = 0; i < order.size(); ++i) {
      const size_t old = size_t(order[i]);
      kernels.push_back(std::move(graph_.kernels[old]));
      for (const int before : graph_.after[old]) after[i].push_back(position[size_t(before)]);
    }
    graph_.kernels = std::move(kernels);
    graph_.after = std::move(after);
  }

  KernelGraph& graph_;
  std::vector<int> producer_;              // of each buffer; -1: external
  std::vector<std::vector<int>> readers_;  // of each buffer
  std::vector<int> remaining_;             // readers of each temporary not yet scheduled
};

}  // namespace

void schedule(KernelGraph& graph) { Scheduler(graph).run(); }

}  // namespace tessera
