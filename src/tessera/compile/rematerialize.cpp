#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "tessera/compile/passes.h"

namespace tessera {

namespace {

// Clones one region's members for users outside it. The list stays topological: a clone stands
// right before the first instance that needs it, which is where `schedule` will want it.
class RegionCloner {
 public:
  RegionCloner(Instances& instances, int region) : instances_(instances), region_(region) {
    kept_.reserve(instances.list.size());
    for (const auto& [r, inst] : instances.exported) {
      if (r == region) kept_.insert(inst);
    }
    // What the caller gets is stored anyway.
    for (const Operand& output : instances.outputs) kept_.insert(output.inst);
    for (const auto& assign : instances.assigns) kept_.insert(assign.value.inst);
  }

  void run() {
    std::vector<Instance> old = std::move(instances_.list);
    instances_.list.clear();
    moved_.assign(old.size(), -1);
    for (size_t i = 0; i < old.size(); ++i) {
      Instance instance = old[i];
      const bool inside = is_member(instance);
      for (Operand& operand : instance.inputs) {
        const int producer = operand.inst;
        const bool recompute =
            !inside && is_member(old[size_t(producer)]) && !kept_.contains(producer);
        operand.inst = recompute ? clone(old, producer) : moved_[size_t(producer)];
      }
      moved_[i] = push(std::move(instance));
    }
    for (Operand& output : instances_.outputs) output.inst = moved_[size_t(output.inst)];
    for (auto& assign : instances_.assigns) assign.value.inst = moved_[size_t(assign.value.inst)];
    for (auto& [region, inst] : instances_.exported) inst = moved_[size_t(inst)];
  }

 private:
  bool is_member(const Instance& instance) const {
    return std::find(instance.regions.begin(), instance.regions.end(), region_) !=
           instance.regions.end();
  }

  // The clone of `root` and of the members it needs, inputs first, without recursion.
  int clone(const std::vector<Instance>& old, int root) {
    std::set<int> needed;
    std::vector<int> stack{root};
    while (!stack.empty()) {
      const int i = stack.back();
      stack.pop_back();
      if (clones_.contains(i) || !needed.insert(i).second) continue;
      for (const Operand& operand : old[size_t(i)].inputs) {
        if (is_member(old[size_t(operand.inst)]) && !kept_.contains(operand.inst)) {
          stack.push_back(operand.inst);
        }
      }
    }
    for (const int i : needed) {
      Instance copy = old[size_t(i)];
      for (Operand& operand : copy.inputs) {
        const auto it = clones_.find(operand.inst);
        operand.inst = it == clones_.end() ? moved_[size_t(operand.inst)] : it->second;
      }
      copy.late = true;
      // Outside every region: what it takes from a region around this one is cloned in its turn.
      copy.regions.clear();
      clones_[i] = push(std::move(copy));
      ++instances_.rematerialized;
    }
    return clones_.at(root);
  }

  int push(Instance instance) {
    instances_.list.push_back(std::move(instance));
    return int(instances_.list.size()) - 1;
  }

  Instances& instances_;
  int region_;
  std::unordered_set<int> kept_;
  std::vector<int> moved_;               // old index -> new index
  std::unordered_map<int, int> clones_;  // old index -> new index of the clone
};

// Who reads a buffer wants all that lies in it.
void use_whole_buffers(Instance& x) {
  for (size_t i = 0; i < x.stored.size(); ++i) {
    if (x.used[size_t(x.stored[i].home)]) x.used[i] = 1;
  }
}

}  // namespace

void remove_dead(Instances& instances) {
  std::vector<char> live(instances.list.size(), 0);
  for (const Operand& output : instances.outputs) live[size_t(output.inst)] = 1;
  for (const auto& assign : instances.assigns) live[size_t(assign.value.inst)] = 1;
  for (size_t i = instances.list.size(); i-- > 0;) {
    if (instances.list[i].op == Op::leaf) live[i] = 1;
    if (!live[i]) continue;
    for (const Operand& operand : instances.list[i].inputs) live[size_t(operand.inst)] = 1;
  }
  std::vector<int> moved(instances.list.size(), -1);
  std::vector<Instance> kept;
  for (size_t i = 0; i < instances.list.size(); ++i) {
    if (!live[i]) continue;
    moved[i] = int(kept.size());
    kept.push_back(std::move(instances.list[i]));
    kept.back().used.assign(kept.back().types.size(), kept.back().op == Op::custom);
    for (Operand& operand : kept.back().inputs) operand.inst = moved[size_t(operand.inst)];
  }
  instances.list = std::move(kept);
  auto use = [&](const Operand& o) { instances.list[size_t(o.inst)].used[size_t(o.out)] = 1; };
  for (const Instance& instance : instances.list) {
    for (const Operand& operand : instance.inputs) use(operand);
  }
  for (Operand& output : instances.outputs) {
    output.inst = moved[size_t(output.inst)];
    use(output);
  }
  for (auto& assign : instances.assigns) {
    assign.value.inst = moved[size_t(assign.value.inst)];
    use(assign.value);
  }
  for (Instance& instance : instances.list) use_whole_buffers(instance);
  instances.exported.clear();
}

void rematerialize(Instances& instances) {
  std::set<int, std::greater<>> regions;  // inner regions have higher numbers and go first
  for (const auto& [region, inst] : instances.exported) regions.insert(region);
  for (const int region : regions) RegionCloner(instances, region).run();
  remove_dead(instances);
}

}  // namespace tessera
