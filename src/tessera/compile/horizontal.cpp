#include <algorithm>
#include <map>

#include "tessera/compile/passes.h"
#include "tessera/kernel/part_table.h"

namespace tessera {

namespace {

// A kernel that is the last to read more than this is busy long enough by itself.
constexpr int64_t kMostHeldByOne = int64_t{16} << 20;
constexpr int64_t kMemoryShare = 64;  // of the device's memory: what waiting may cost in all

// Walks the kernels in their order. One that has others like it waits for them, until somebody
// needs what it makes, or until what it keeps alive meanwhile takes too much memory. What a waiting
// kernel needs has run, so those that wait at the same time are independent of each other.
class Joiner {
 public:
  Joiner(KernelGraph& graph, const Target& target)
      : graph_(graph),
        target_(target),
        set_of_(graph.kernels.size(), -1),
        last_use_(graph.buffers.size(), -1),
        waiting_readers_(graph.buffers.size(), 0),
        is_held_(graph.buffers.size(), 0) {
    for (size_t k = 0; k < graph.kernels.size(); ++k) {
      for (const int b : graph.kernels[k].buffers) {
        if (b >= 0) last_use_[size_t(b)] = int(k);
      }
    }
    for (const auto& assign : graph.assigns) last_use_[size_t(assign.buffer)] = int(set_of_.size());
  }

  void run() {
    find_sets();
    find_needs();
    find_live();
    for (now_ = 0; now_ < int(graph_.kernels.size()); ++now_) visit();
    for (size_t s = 0; s < sets_.size(); ++s) launch_set(int(s));
    rebuild();
  }

 private:
  struct Set {
    size_t most = 0;           // parts of one launch
    std::vector<int> waiting;  // kernels, in their order
  };

  const KernelNode& node(int k) const { return graph_.kernels[size_t(k)]; }

  static bool can_join(const KernelNode& node) {
    if (!node.call.ir) return false;
    const auto& insts = node.call.ir->insts;
    // A wrong index is put down to its one kernel.
    return std::ranges::none_of(insts, [](const IrInst& inst) { return inst.indexed; });
  }

  // Kernels that are alike make a set.
  void find_sets() {
    std::map<std::string, std::vector<int>> alike;
    for (size_t k = 0; k < graph_.kernels.size(); ++k) {
      if (can_join(node(int(k)))) alike[key(*node(int(k)).call.ir)].push_back(int(k));
    }
    for (const auto& [key, kernels] : alike) {
      const int64_t most = most_parts(*node(kernels[0]).call.ir, target_.table_words);
      if (kernels.size() < 2 || most < 2) continue;
      for (const int k : kernels) set_of_[size_t(k)] = int(sets_.size());
      sets_.push_back({.most = size_t(most), .waiting = {}});
    }
  }

  // What each kernel must come after: buffers are written, read, and written again in the order at
  // hand.
  void find_needs() {
    needs_ = graph_.after;
    std::vector<int> writer(graph_.buffers.size(), -1);
    std::vector<std::vector<int>> readers(graph_.buffers.size());
    for (size_t k = 0; k < graph_.kernels.size(); ++k) {
      const KernelNode& node = graph_.kernels[k];
      for (size_t i = 0; i < node.buffers.size(); ++i) {
        if (node.buffers[i] < 0) continue;
        const auto b = size_t(node.buffers[i]);
        if (writer[b] >= 0) needs_[k].push_back(writer[b]);
        if (i < first_output(node)) {
          readers[b].push_back(int(k));
          continue;
        }
        for (const int reader : readers[b]) {
          if (reader != int(k)) needs_[k].push_back(reader);
        }
        readers[b].clear();
        writer[b] = int(k);
      }
    }
  }

  bool is_temporary(int b) const {
    return b >= 0 && graph_.buffers[size_t(b)].kind == BufferKind::temporary;
  }
  int64_t size(int b) const { return graph_.buffers[size_t(b)].bytes; }

  // Bytes of the temporaries alive at each kernel, as scheduled.
  void find_live() {
    std::vector<int64_t> change(graph_.kernels.size() + 1, 0);
    std::vector<char> made(graph_.buffers.size(), 0);
    for (size_t k = 0; k < graph_.kernels.size(); ++k) {
      for (const int b : graph_.kernels[k].buffers) {
        if (!is_temporary(b) || std::exchange(made[size_t(b)], 1)) continue;
        change[k] += size(b);
        const auto end = size_t(last_use_[size_t(b)]) + 1;
        if (end < change.size()) change[end] -= size(b);
      }
    }
    int64_t bytes = 0, peak = 0;
    for (size_t k = 0; k < graph_.kernels.size(); ++k) {
      live_.push_back(bytes += change[k]);
      peak = std::max(peak, bytes);
    }
    most_live_ = peak + target_.memory_bytes / kMemoryShare;
  }

  void visit() {
    for (const int before : needs_[size_t(now_)]) {
      const int s = set_of_[size_t(before)];
      if (s >= 0 && is_waiting(before, s)) launch_set(s);
    }
    const int s = set_of_[size_t(now_)];
    if (s < 0 || dying_bytes() > kMostHeldByOne) {
      launches_.push_back({now_});
    } else {
      wait_in(sets_[size_t(s)]);
      if (sets_[size_t(s)].waiting.size() == sets_[size_t(s)].most) launch_set(s);
    }
    for (const int b : node(now_).buffers) {
      if (is_temporary(b) && last_use_[size_t(b)] == now_) hold(b);
    }
    if (live_[size_t(now_)] + held_ <= most_live_) return;
    for (size_t i = 0; i < sets_.size(); ++i) launch_set(int(i));
  }

  bool is_waiting(int k, int s) const {
    return std::ranges::binary_search(sets_[size_t(s)].waiting, k);
  }

  // Of temporaries that this kernel is the last to read.
  int64_t dying_bytes() const {
    int64_t bytes = 0;
    const KernelNode& here = node(now_);
    for (size_t i = 0; i < first_output(here); ++i) {
      const int b = here.buffers[i];
      if (is_temporary(b) && last_use_[size_t(b)] == now_) bytes += size(b);
    }
    return bytes;
  }

  void wait_in(Set& set) {
    set.waiting.push_back(now_);
    for_each_input(now_, [this](int b) { ++waiting_readers_[size_t(b)]; });
  }

  void launch_set(int s) {
    std::vector<int>& waiting = sets_[size_t(s)].waiting;
    if (waiting.empty()) return;
    for (const int k : waiting) {
      for_each_input(k, [this](int b) {
        if (--waiting_readers_[size_t(b)] > 0 || !is_held_[size_t(b)]) return;
        is_held_[size_t(b)] = 0;
        held_ -= size(b);
      });
    }
    launches_.push_back(std::exchange(waiting, {}));
  }

  // A buffer that would be free by now stays for those that wait.
  void hold(int b) {
    if (waiting_readers_[size_t(b)] == 0 || is_held_[size_t(b)]) return;
    is_held_[size_t(b)] = 1;
    held_ += size(b);
  }

  template <class F>
  void for_each_input(int k, F f) {
    for (size_t i = 0; i < first_output(node(k)); ++i) f(node(k).buffers[i]);
  }

  void rebuild() {
    std::vector<int> position(graph_.kernels.size());
    for (size_t i = 0; i < launches_.size(); ++i) {
      for (const int k : launches_[i]) position[size_t(k)] = int(i);
    }
    std::vector<KernelNode> kernels;
    std::vector<std::vector<int>> after(launches_.size());
    for (size_t i = 0; i < launches_.size(); ++i) {
      kernels.push_back(joined(launches_[i]));
      for (const int k : launches_[i]) {
        for (const int before : graph_.after[size_t(k)]) {
          after[i].push_back(position[size_t(before)]);
        }
      }
    }
    graph_.kernels = std::move(kernels);
    graph_.after = std::move(after);
  }

  KernelNode joined(const std::vector<int>& members) {
    KernelNode all = std::move(graph_.kernels[size_t(members[0])]);
    if (members.size() == 1) return all;
    const size_t inputs = first_output(all), operands = all.buffers.size();
    KernelNode one = all;
    all.buffers.clear();
    all.call.operands.clear();
    const auto take = [&](const KernelNode& from, size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) {
        all.buffers.push_back(from.buffers[i]);
        all.call.operands.push_back(from.call.operands[i]);
      }
    };
    const auto member = [&](size_t m) -> const KernelNode& {
      return m == 0 ? one : node(members[m]);
    };
    for (size_t m = 0; m < members.size(); ++m) take(member(m), 0, inputs);
    for (size_t m = 0; m < members.size(); ++m) {
      take(member(m), inputs, operands);
      all.call.parts.push_back(member(m).call.ir->extents[0]);
      all.late = all.late && member(m).late;
      if (member(m).scope != all.scope) all.scope = 0;
      if (member(m).line.line != all.line.line) all.line = {};
    }
    all.call.outputs = int((operands - inputs) * members.size());
    all.label += cat(" × ", members.size());
    return all;
  }

  KernelGraph& graph_;
  const Target& target_;
  std::vector<Set> sets_;
  std::vector<int> set_of_;              // per kernel; -1: it has none like it
  std::vector<std::vector<int>> needs_;  // per kernel: those before it
  std::vector<int> last_use_;            // per buffer, as scheduled
  std::vector<int64_t> live_;            // per kernel
  std::vector<int> waiting_readers_;     // per buffer
  std::vector<char> is_held_;            // per buffer
  int64_t held_ = 0, most_live_ = 0;     // bytes
  int now_ = 0;
  std::vector<std::vector<int>> launches_;  // kernels of each
};

}  // namespace

void horizontal(KernelGraph& graph, const Target& target) { Joiner(graph, target).run(); }

}  // namespace tessera
