#include <algorithm>
#include <limits>
#include <map>

#include "tessera/compile/passes.h"
#include "tessera/graph/scope.h"

namespace tessera {

namespace {

constexpr size_t kPeakItems = 8;  // temporaries named in the report

// Offsets inside one growing arena: the smallest free gap that fits, neighbours merged on release.
class Arena {
 public:
  explicit Arena(int64_t alignment) : alignment_(alignment) {}

  int64_t allocate(int64_t bytes) {
    bytes = round_up(bytes);
    auto best = gaps_.end();
    for (auto it = gaps_.begin(); it != gaps_.end(); ++it) {
      if (it->second >= bytes && (best == gaps_.end() || it->second < best->second)) best = it;
    }
    if (best == gaps_.end()) {
      // Grow, using the gap at the end if there is one.
      int64_t offset = end_;
      if (!gaps_.empty() &&
          std::prev(gaps_.end())->first + std::prev(gaps_.end())->second == end_) {
        offset = std::prev(gaps_.end())->first;
        gaps_.erase(std::prev(gaps_.end()));
      }
      end_ = offset + bytes;
      return offset;
    }
    const auto [offset, size] = *best;
    gaps_.erase(best);
    if (size > bytes) gaps_[offset + bytes] = size - bytes;
    return offset;
  }

  void release(int64_t offset, int64_t bytes) {
    bytes = round_up(bytes);
    if (bytes == 0) return;
    auto it = gaps_.emplace(offset, bytes).first;
    if (const auto next = std::next(it);
        next != gaps_.end() && offset + it->second == next->first) {
      it->second += next->second;
      gaps_.erase(next);
    }
    if (it != gaps_.begin()) {
      const auto before = std::prev(it);
      if (before->first + before->second == offset) {
        before->second += it->second;
        gaps_.erase(it);
      }
    }
  }

  int64_t size() const { return end_; }

 private:
  int64_t round_up(int64_t bytes) const {
    return (bytes + alignment_ - 1) / alignment_ * alignment_;
  }

  int64_t alignment_;
  int64_t end_ = 0;
  std::map<int64_t, int64_t> gaps_;  // offset -> size
};

class Planner {
 public:
  Planner(const KernelGraph& graph, int alignment)
      : graph_(graph), arena_(alignment), last_use_(graph.buffers.size(), -1) {
    program_.buffers = graph.buffers;
  }

  Program run() {
    for (size_t k = 0; k < graph_.kernels.size(); ++k) {
      for (const int b : graph_.kernels[k].buffers) {
        if (b >= 0) last_use_[size_t(b)] = int(k);
      }
    }
    // What an assign copies from must last to the end.
    for (const auto& assign : graph_.assigns) {
      last_use_[size_t(assign.buffer)] = std::numeric_limits<int>::max();
    }
    maker_.resize(graph_.buffers.size());
    for (size_t k = 0; k < graph_.kernels.size(); ++k) place(int(k));
    for (const auto& assign : graph_.assigns) {
      if (assign.buffer != assign.external) copy_assign(assign);
    }
    finish();
    return std::move(program_);
  }

 private:
  bool is_temporary(int b) const { return graph_.buffers[size_t(b)].kind == BufferKind::temporary; }

  void place(int k) {
    const KernelNode& node = graph_.kernels[size_t(k)];
    std::vector<int> taken;  // inputs whose memory an output of this kernel took over
    for (size_t i = first_output(node); i < node.buffers.size(); ++i) {
      const int b = node.buffers[i];
      if (b < 0 || !is_temporary(b) || maker_[size_t(b)] == &node) continue;
      maker_[size_t(b)] = &node;
      const int shared = find_shared(k, i, taken);
      if (shared >= 0) {
        taken.push_back(shared);
        program_.buffers[size_t(b)].offset = program_.buffers[size_t(shared)].offset;
      } else {
        program_.buffers[size_t(b)].offset = arena_.allocate(graph_.buffers[size_t(b)].bytes);
      }
      live_.push_back(b);
    }
    note_peak(taken);
    release_dead(k, taken);
    add_instruction(node);
  }

  // A temporary that dies here and whose memory output operand i may use.
  int find_shared(int k, size_t i, const std::vector<int>& taken) const {
    const KernelNode& node = graph_.kernels[size_t(k)];
    const int64_t bytes = graph_.buffers[size_t(node.buffers[i])].bytes;
    for (size_t in = 0; in < first_output(node); ++in) {
      const int b = node.buffers[in];
      const bool dies = is_temporary(b) && last_use_[size_t(b)] == k;
      if (!dies || graph_.buffers[size_t(b)].bytes != bytes || !may_share(node, in, i)) continue;
      if (std::find(taken.begin(), taken.end(), b) != taken.end()) continue;
      if (std::count(node.buffers.begin(), node.buffers.end(), b) == 1) return b;
    }
    return -1;
  }

  void note_peak(const std::vector<int>& taken) {
    Report& report = program_.report;
    int64_t bytes = 0;
    for (const int b : live_) bytes += graph_.buffers[size_t(b)].bytes;
    for (const int b : taken) bytes -= graph_.buffers[size_t(b)].bytes;
    report.timeline.push_back(bytes);
    if (bytes <= report.peak_bytes) return;
    report.peak_bytes = bytes;
    report.peak_at = int(report.timeline.size()) - 1;
    at_peak_ = live_;
    for (const int b : taken) std::erase(at_peak_, b);
  }

  void release_dead(int k, const std::vector<int>& taken) {
    std::erase_if(live_, [&](int b) {
      if (last_use_[size_t(b)] != k) return false;
      const bool handed_on = std::find(taken.begin(), taken.end(), b) != taken.end();
      if (!handed_on) {
        arena_.release(program_.buffers[size_t(b)].offset, graph_.buffers[size_t(b)].bytes);
      }
      return true;
    });
  }

  void add_instruction(const KernelNode& node) {
    Instruction instruction;
    instruction.call = node.call;
    instruction.buffers = node.buffers;
    instruction.scope = node.scope;
    instruction.line = node.line;
    instruction.label = node.label;
    program_.instructions.push_back(std::move(instruction));
  }

  // Every reader of the old value has run by now: these come last, on the copy lane.
  void copy_assign(const KernelGraph::Assign& assign) {
    const Type& type = graph_.buffers[size_t(assign.external)].type;
    const OperandView operand{type.dtype, contiguous_view(type.shape)};
    Instruction instruction;
    instruction.call.kernel = "copy";
    instruction.call.operands = {operand, operand};
    instruction.buffers = {assign.buffer, assign.external};
    instruction.lane = Lane::copy;
    for (size_t i = 0; i < program_.instructions.size(); ++i) {
      if (program_.instructions[i].lane == Lane::copy) continue;
      const auto& used = program_.instructions[i].buffers;
      for (const int b : instruction.buffers) {
        if (std::find(used.begin(), used.end(), b) != used.end()) {
          instruction.waits.push_back(int(i));
          break;
        }
      }
    }
    instruction.label = "assign";
    note_peak({});
    program_.instructions.push_back(std::move(instruction));
    ++program_.report.copies;
  }

  void finish() {
    Report& report = program_.report;
    for (const PlannedBuffer& buffer : program_.buffers) {
      if (buffer.kind == BufferKind::external) {
        program_.external_types.push_back(buffer.type);
        report.external_bytes += buffer.bytes;
      }
    }
    program_.externals = int(program_.external_types.size());
    for (const int b : graph_.outputs) {
      program_.output_types.push_back(graph_.buffers[size_t(b)].type);
      report.output_bytes += graph_.buffers[size_t(b)].bytes;
    }
    program_.outputs = int(graph_.outputs.size());
    program_.arena_bytes = arena_.size();
    report.temporary_bytes = arena_.size();
    break_down_peak();
    for (const auto& assign : graph_.assigns) report.donated += assign.buffer == assign.external;
    report.kernels = int(program_.instructions.size());
    for (Instruction& instruction : program_.instructions) {
      instruction.bytes = bytes_moved(instruction);
      report.generated += instruction.call.ir != nullptr;
      report.bytes_moved += instruction.bytes;
    }
  }

  void break_down_peak() {
    Report& report = program_.report;
    std::sort(at_peak_.begin(), at_peak_.end(), [this](int a, int b) {
      return graph_.buffers[size_t(a)].bytes > graph_.buffers[size_t(b)].bytes;
    });
    std::map<std::string, int64_t> by_scope;
    int64_t others = 0;
    for (size_t i = 0; i < at_peak_.size(); ++i) {
      const PlannedBuffer& buffer = graph_.buffers[size_t(at_peak_[i])];
      const KernelNode& maker = *maker_[size_t(at_peak_[i])];
      const std::string scope = scope_path(maker.scope);
      by_scope[scope] += buffer.bytes;
      if (i < kPeakItems) {
        report.at_peak.push_back({cat(maker.label, " ", buffer.type), buffer.bytes, scope});
      } else {
        others += buffer.bytes;
      }
    }
    if (at_peak_.size() > kPeakItems) {
      report.at_peak.push_back({cat(at_peak_.size() - kPeakItems, " more"), others});
    }
    for (const auto& [scope, bytes] : by_scope) report.peak_by_scope.push_back({scope, bytes});
    std::stable_sort(report.peak_by_scope.begin(), report.peak_by_scope.end(),
                     [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  }

  // Bytes that an instruction reads and writes, each once: a broadcast reads its source, not its
  // repetitions.
  int64_t bytes_moved(const Instruction& instruction) const {
    int64_t bytes = 0;
    for (size_t i = 0; i < instruction.call.operands.size(); ++i) {
      if (instruction.buffers[i] < 0) continue;
      const OperandView& operand = instruction.call.operands[i];
      const int64_t elements = instruction.call.ir
                                   ? elements_touched(instruction.call, i)
                                   : elements_touched(operand.view.shape, operand.view.strides);
      const int64_t most = graph_.buffers[size_t(instruction.buffers[i])].bytes;
      bytes += std::min(elements * size_of(operand.dtype), most);
    }
    return bytes;
  }

  static int64_t elements_touched(const Dims& extents, const Dims& strides) {
    int64_t elements = 1;
    for (int d = 0; d < extents.rank(); ++d) {
      if (strides[d] != 0 || extents[d] == 0) elements *= extents[d];
    }
    return elements;
  }

  // Several accesses of one operand mostly touch the same elements: the widest counts.
  static int64_t elements_touched(const KernelCall& call, size_t i) {
    const auto [part, operand] = part_operand(call, i);
    Dims all = call.ir->extents;
    if (!call.parts.empty()) all[0] = call.parts[part];
    int64_t most = 0;
    for (const IrInst& inst : call.ir->insts) {
      const bool access = inst.kind == IrKind::load || inst.kind == IrKind::store;
      if (!access || inst.operand != int(operand)) continue;
      Dims extents = all;
      for (int d = 0; inst.masked && d < extents.rank(); ++d) {
        const int64_t low = std::max<int64_t>(inst.low[d], 0);
        extents[d] = std::max<int64_t>(std::min(inst.high[d], extents[d]) - low, 0);
      }
      const Dims strides = inst.indexed ? Dims::filled(extents.rank(), 1) : inst.strides;
      most = std::max(most, elements_touched(extents, strides));
    }
    return most;
  }

  const KernelGraph& graph_;
  Arena arena_;
  std::vector<int> last_use_;
  std::vector<int> live_;
  std::vector<const KernelNode*> maker_;  // per temporary
  std::vector<int> at_peak_;
  Program program_;
};

}  // namespace

Program plan_memory(const KernelGraph& graph, int alignment) {
  return Planner(graph, alignment).run();
}

}  // namespace tessera
