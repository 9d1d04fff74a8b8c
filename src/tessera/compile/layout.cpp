#include <algorithm>
#include <set>
#include <unordered_map>

#include "tessera/compile/passes.h"
#include "tessera/compile/rewrite_function.h"
#include "tessera/compile/views.h"

namespace tessera {

namespace {

class Layout {
 public:
  explicit Layout(const GraphFunction& function) : function_(function) {}

  Instances run() {
    for (size_t i = 0; i < function_.externals.size(); ++i) add_external(int(i));
    const std::vector<Value> roots = computed_values(function_);
    std::vector<NodePtr> order = topological_order(roots);
    std::sort(order.begin(), order.end(),
              [](const NodePtr& a, const NodePtr& b) { return a->id < b->id; });
    find_regions(order);
    for (const NodePtr& node : order) add_node(node);
    place_results();
    mark_used();
    return std::move(result_);
  }

 private:
  void add_external(int index) {
    const Value& leaf = function_.externals[size_t(index)];
    Instance instance;
    instance.op = Op::leaf;
    instance.types = {leaf.type()};
    instance.external = index;
    values_[leaf] = whole(push(std::move(instance)), 0);
    result_.externals.push_back(leaf.type());
  }

  // A node lies in a region when the region's exit needs it and its enter does not cut it off.
  void find_regions(const std::vector<NodePtr>& order) {
    std::set<uint64_t> regions;
    for (const NodePtr& node : order) {
      if (node->op == Op::region_exit) regions.insert(node->attrs.bits);
    }
    int number = 0;
    for (const uint64_t region : regions) {
      std::set<const Node*> members;
      for (auto it = order.rbegin(); it != order.rend(); ++it) {
        const Node* node = it->get();
        const bool exit = node->op == Op::region_exit && node->attrs.bits == region;
        if (!exit && !members.contains(node)) continue;
        if (node->op == Op::region_enter && node->attrs.bits == region) {
          members.erase(node);
          continue;
        }
        for (const Value& input : node->inputs()) members.insert(input.node.get());
        if (exit) members.erase(node);
      }
      for (const Node* node : members) {
        // Leaves and constants cost nothing to keep.
        if (node->op != Op::leaf && node->op != Op::constant) regions_[node].push_back(number);
      }
      numbers_[region] = number++;
    }
  }

  void add_node(const NodePtr& node) {
    if (node->op == Op::leaf) {
      TESSERA_ASSERT(values_.contains(Value{node, 0}));  // every leaf is an external
      return;
    }
    if (node->op == Op::region_enter || node->op == Op::region_exit) {
      const Operand operand = values_.at(node->inputs()[0]);
      values_[{node, 0}] = operand;
      if (node->op == Op::region_exit) {
        result_.exported.emplace_back(numbers_.at(node->attrs.bits), operand.inst);
      }
      return;
    }
    if (info(node->op).kind == OpKind::move) return add_move(node);
    Instance instance;
    instance.op = node->op;
    instance.attrs = node->attrs;
    instance.types = node->types;
    instance.scope = node->scope;
    instance.line = node->line;
    if (const auto it = regions_.find(node.get()); it != regions_.end()) {
      instance.regions = it->second;
    }
    for (const Value& input : node->inputs()) {
      Operand operand = values_.at(input);
      if (info(node->op).layout == OpLayout::contiguous && !is_packed(operand.view)) {
        operand = copy(operand, node->scope, instance.regions);
      }
      instance.inputs.push_back(operand);
    }
    const int index = push(std::move(instance));
    for (size_t i = 0; i < node->types.size(); ++i) values_[{node, int(i)}] = whole(index, int(i));
  }

  void add_move(const NodePtr& node) {
    Operand operand = values_.at(node->inputs()[0]);
    std::optional<View> view = move_view(node->op, node->attrs, operand.view);
    if (!view) {
      const auto it = regions_.find(node.get());
      operand = copy(operand, node->scope, it == regions_.end() ? std::vector<int>{} : it->second);
      view = move_view(node->op, node->attrs, operand.view);
    }
    operand.view = *view;
    values_[{node, 0}] = operand;
  }

  // Outputs and assigns need storage of their own: a packed instance output that nobody else
  // claims, else a copy.
  void place_results() {
    std::set<std::pair<int, int>> claimed;
    auto place = [&](const Value& value) {
      Operand operand = values_.at(value);
      const Instance& source = result_.list[size_t(operand.inst)];
      const Type& stored = source.types[size_t(operand.out)];
      const bool owned = source.op != Op::leaf && source.op != Op::constant &&
                         is_contiguous(operand.view) &&
                         numel(operand.view.shape) == numel(stored.shape);
      if (!owned || !claimed.emplace(operand.inst, operand.out).second) {
        operand = copy(operand, source.scope, {});
      }
      return operand;
    };
    // Assigns first: an output that equals an assigned value is the one that pays for the copy, and
    // the Var keeps its chance of being written in place.
    for (const auto& assign : function_.assigns) {
      result_.assigns.push_back({assign.external, place(assign.value)});
    }
    for (const Value& output : function_.outputs) result_.outputs.push_back(place(output));
  }

  void mark_used() {
    // A user's kernel need not know of outputs that nobody reads.
    for (Instance& instance : result_.list) {
      instance.used.assign(instance.types.size(), instance.op == Op::custom);
    }
    auto use = [this](const Operand& o) { result_.list[size_t(o.inst)].used[size_t(o.out)] = 1; };
    for (const Instance& instance : result_.list) {
      for (const Operand& operand : instance.inputs) use(operand);
    }
    for (const Operand& operand : result_.outputs) use(operand);
    for (const auto& assign : result_.assigns) use(assign.value);
  }

  Operand copy(const Operand& operand, uint32_t scope, const std::vector<int>& regions) {
    const Type& type = result_.list[size_t(operand.inst)].types[size_t(operand.out)];
    Instance instance;
    instance.op = Op::cast;
    instance.attrs.dtype = type.dtype;
    instance.inputs = {operand};
    instance.types = {{type.dtype, operand.view.shape}};
    instance.scope = scope;
    instance.regions = regions;
    // A constant spread out is a fill, not a copy of memory.
    if (result_.list[size_t(operand.inst)].op != Op::constant) ++result_.copies;
    return whole(push(std::move(instance)), 0);
  }

  int push(Instance instance) {
    result_.list.push_back(std::move(instance));
    return int(result_.list.size()) - 1;
  }

  Operand whole(int inst, int out) const {
    return {inst, out, contiguous_view(result_.list[size_t(inst)].types[size_t(out)].shape)};
  }

  const GraphFunction& function_;
  Instances result_;
  std::unordered_map<Value, Operand> values_;
  std::unordered_map<const Node*, std::vector<int>> regions_;
  std::unordered_map<uint64_t, int> numbers_;
};

}  // namespace

Instances layout(const GraphFunction& function) { return Layout(function).run(); }

}  // namespace tessera
