// What a kernel stores only for another kernel to read is computed there again where that moves
// fewer bytes: the factors of gelu's gradient are functions of its input alone.
#include <algorithm>
#include <map>
#include <set>

#include "tessera/compile/groups.h"
#include "tessera/compile/passes.h"

namespace tessera {

namespace {

constexpr int kRounds = 3;  // values recomputed in one round bring others within reach

// What is read instead of a value may be larger than it by this share: a bias beside a product.
constexpr int64_t kSlack = 8;

// The price of one result in bytes that could be moved instead. Only the order of magnitude counts:
// a vector unit does simple arithmetic while a byte or so comes from memory.
int64_t price(Op op) {
  switch (op) {
    case Op::div:
    case Op::sqrt:
    case Op::rsqrt:
    case Op::reciprocal: return 2;
    case Op::exp:
    case Op::expm1:
    case Op::log:
    case Op::log1p:
    case Op::log2:
    case Op::sin:
    case Op::cos:
    case Op::tanh:
    case Op::sigmoid:
    case Op::gelu_tanh: return 6;
    case Op::erf:
    case Op::gelu_tanh_slope:
    case Op::tan:
    case Op::sinh:
    case Op::cosh:
    case Op::asin:
    case Op::acos:
    case Op::atan:
    case Op::uniform: return 12;
    case Op::atan2:
    case Op::pow:
    case Op::mod:
    case Op::floor_div: return 24;
    default: return 1;
  }
}

bool is_cheap(Op op) {
  return info(op).kind == OpKind::scalar || op == Op::iota || op == Op::uniform;
}

class Recomputer {
 public:
  Recomputer(Instances& instances, const Grouping& grouping)
      : list_(instances.list),
        instances_(instances),
        grouping_(grouping),
        kept_(list_.size(), 0),
        readers_(list_.size()) {
    for (const Operand& output : instances.outputs) kept_[size_t(output.inst)] = 1;
    for (const auto& assign : instances.assigns) kept_[size_t(assign.value.inst)] = 1;
    for (size_t i = 0; i < list_.size(); ++i) {
      for (const Operand& o : list_[i].inputs) {
        if (group(int(i)) != group(o.inst)) readers_[size_t(o.inst)].insert(group(int(i)));
      }
    }
  }

  // Whether anything changed.
  bool run() {
    for (size_t g = 0; g < grouping_.groups.size(); ++g) {
      if (grouping_.groups[g].generated) choose(int(g));
    }
    if (chosen_.empty()) return false;
    rebuild();
    return true;
  }

 private:
  int group(int i) const { return grouping_.group_of[size_t(i)]; }
  const Instance& inst(int i) const { return list_[size_t(i)]; }
  int64_t bytes(int i) const { return byte_size(inst(i).types[0]); }

  static bool is_whole(const Operand& o, const Instance& source) {
    return is_contiguous(o.view) && o.view.shape == source.types[size_t(o.out)].shape;
  }

  // Values that group g reads from other generated kernels and could compute itself.
  std::set<int> candidates(int g) const {
    std::set<int> found, unfit;
    const Group& reader = grouping_.groups[size_t(g)];
    for (const int member : reader.members) {
      for (size_t k = 0; k < inst(member).inputs.size(); ++k) {
        const Operand& o = inst(member).inputs[k];
        const Instance& source = inst(o.inst);
        if (group(o.inst) == g || group(o.inst) < 0 || !is_cheap(source.op)) continue;
        const bool fits = source.types[0].shape == reader.domain && is_whole(o, source) &&
                          !is_addressed(inst(member).op, k);
        (fits ? found : unfit).insert(o.inst);
      }
    }
    for (const int i : unfit) found.erase(i);
    return found;
  }

  // What computing a value in group g would take.
  struct Cone {
    std::set<int> members;   // to be cloned
    std::set<int> frontier;  // to be read in addition
    int64_t price = 0;       // per element
  };

  // The members of the producing kernel that lead to `root`, up to what is in memory anyway.
  Cone cone_of(int root, const std::set<int>& reads, const std::set<int>& cloned) const {
    Cone cone;
    std::vector<int> stack{root};
    while (!stack.empty()) {
      const int i = stack.back();
      stack.pop_back();
      if (!cone.members.insert(i).second) continue;
      cone.price += price(inst(i).op);
      for (const Operand& o : inst(i).inputs) {
        const Instance& source = inst(o.inst);
        if (source.op == Op::constant || cloned.contains(o.inst) || reads.contains(o.inst))
          continue;
        const bool inside = group(o.inst) == group(root) && is_cheap(source.op) &&
                            source.types[0].shape == inst(root).types[0].shape &&
                            is_whole(o, source);
        if (inside) {
          stack.push_back(o.inst);
        } else {
          cone.frontier.insert(o.inst);
        }
      }
    }
    return cone;
  }

  bool pays(int root, const Cone& cone) const {
    int64_t more = 0, stores = 0;
    for (const int i : cone.frontier) {
      more += bytes(i);
      const bool in_memory =
          group(i) != group(root) || kept_[size_t(i)] || !readers_[size_t(i)].empty();
      if (!in_memory) stores += bytes(i);
    }
    if (more > bytes(root) + bytes(root) / kSlack) return false;
    const auto readers = int64_t(readers_[size_t(root)].size());
    const int64_t saved = bytes(root) + (kept_[size_t(root)] ? 0 : bytes(root) / readers);
    return more + stores + cone.price * numel(inst(root).types[0].shape) <= saved;
  }

  void choose(int g) {
    const std::set<int> wanted = candidates(g);
    if (wanted.empty()) return;
    const Group& reader = grouping_.groups[size_t(g)];
    std::set<int> reads, cloned;
    size_t operands = 0;
    for (const int member : reader.members) {
      for (const Operand& o : inst(member).inputs) reads.insert(o.inst);
      operands += inst(member).inputs.size();
    }
    for (const int root : wanted) {  // inputs before users
      reads.erase(root);
      const Cone cone = cone_of(root, reads, cloned);
      size_t more_operands = 0;
      for (const int i : cone.members) more_operands += inst(i).inputs.size();
      const bool room =
          reader.members.size() + cloned.size() + cone.members.size() <= kMaxGroupMembers &&
          operands + more_operands <= kMaxGroupReads;
      if (!room || !pays(root, cone)) {
        reads.insert(root);
        continue;
      }
      operands += more_operands;
      cloned.insert(cone.members.begin(), cone.members.end());
      reads.insert(cone.frontier.begin(), cone.frontier.end());
    }
    if (!cloned.empty()) chosen_[g] = std::move(cloned);
  }

  // A clone stands right before the first reader that wants it: what feeds it stands before.
  void rebuild() {
    const std::vector<Instance> old = std::move(instances_.list);
    instances_.list.clear();
    moved_.assign(old.size(), -1);
    for (size_t i = 0; i < old.size(); ++i) {
      Instance instance = old[i];
      const auto chosen = chosen_.find(grouping_.group_of[i]);
      for (Operand& o : instance.inputs) {
        const bool again = chosen != chosen_.end() && chosen->second.contains(o.inst);
        o.inst = again ? clone(old, chosen->first, o.inst) : moved_[size_t(o.inst)];
      }
      moved_[i] = push(std::move(instance));
    }
    for (Operand& output : instances_.outputs) output.inst = moved_[size_t(output.inst)];
    for (auto& assign : instances_.assigns) assign.value.inst = moved_[size_t(assign.value.inst)];
    remove_dead(instances_);
  }

  int push(Instance instance) {
    instances_.list.push_back(std::move(instance));
    return int(instances_.list.size()) - 1;
  }

  // The clone of `root` for group g, and of what it needs, inputs first.
  int clone(const std::vector<Instance>& old, int g, int root) {
    std::map<int, int>& made = clones_[g];
    std::set<int> needed;
    std::vector<int> stack{root};
    while (!stack.empty()) {
      const int i = stack.back();
      stack.pop_back();
      if (made.contains(i) || !needed.insert(i).second) continue;
      for (const Operand& o : old[size_t(i)].inputs) {
        if (chosen_.at(g).contains(o.inst)) stack.push_back(o.inst);
      }
    }
    for (const int i : needed) {
      Instance copy = old[size_t(i)];
      for (Operand& o : copy.inputs) {
        const auto it = made.find(o.inst);
        o.inst = it == made.end() ? moved_[size_t(o.inst)] : it->second;
      }
      copy.late = true;
      made[i] = push(std::move(copy));
      ++instances_.recomputed;
    }
    return made.at(root);
  }

  std::vector<Instance>& list_;
  Instances& instances_;
  const Grouping& grouping_;
  std::vector<char> kept_;                    // stored in any case
  std::vector<std::set<int>> readers_;        // other groups that read an instance
  std::map<int, std::set<int>> chosen_;       // per group: instances it computes again
  std::map<int, std::map<int, int>> clones_;  // per group: instance -> its clone
  std::vector<int> moved_;                    // old index -> new index
};

}  // namespace

void recompute(Instances& instances, int64_t parameters) {
  for (int round = 0; round < kRounds; ++round) {
    const Grouping grouping = group_instances(instances, true, parameters);
    if (!Recomputer(instances, grouping).run()) return;
  }
}

}  // namespace tessera
