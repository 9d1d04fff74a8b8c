#include <unordered_map>

#include "tessera/compile/compile.h"
#include "tessera/compile/rewrite_function.h"

namespace tessera {

namespace {

class KeyWriter {
 public:
  void number(uint64_t value) { text_.append(reinterpret_cast<const char*>(&value), sizeof value); }
  void dims(const Dims& dims) {
    text_.push_back(char(dims.rank()));
    for (const int64_t d : dims) number(uint64_t(d));
  }
  void type(const Type& type) {
    text_.push_back(char(type.dtype));
    dims(type.shape);
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

}  // namespace

std::string structure_key(const GraphFunction& function) {
  KeyWriter key;
  std::unordered_map<const Node*, uint64_t> numbers;
  std::unordered_map<uint64_t, uint64_t> regions;
  key.number(function.externals.size());
  for (const Value& leaf : function.externals) {
    numbers.emplace(leaf.node.get(), numbers.size());
    key.type(leaf.type());
  }
  auto value = [&](const Value& v) {
    key.number(numbers.at(v.node.get()));
    key.number(uint64_t(v.out));
  };
  const std::vector<Value> roots = computed_values(function);
  for (const NodePtr& node : topological_order(roots)) {
    if (!numbers.emplace(node.get(), numbers.size()).second) continue;
    uint64_t bits = node->attrs.bits;
    if (node->op == Op::region_enter || node->op == Op::region_exit) {
      bits = regions.emplace(bits, regions.size()).first->second;
    } else if (node->op == Op::custom_vjp) {
      bits = 0;  // which backward function it names does not matter any more
    }
    key.number(uint64_t(node->op) | uint64_t(node->attrs.dtype) << 8 |
               uint64_t(node->inputs().size()) << 16);
    key.number(bits);
    key.number(node->scope);  // errors and profiles of a Program name it
    const OpKind kind = info(node->op).kind;
    if (kind == OpKind::index || kind == OpKind::update || kind == OpKind::kernel) {
      key.number(node->line.line);  // what may fail at run time names its line
      key.number(uint64_t(reinterpret_cast<uintptr_t>(node->line.file)));
    }
    key.number(uint64_t(node->attrs.axis));
    key.dims(node->attrs.a);
    key.dims(node->attrs.b);
    key.dims(node->attrs.c);
    for (const Value& input : node->inputs()) value(input);
  }
  key.number(function.outputs.size());
  for (const Value& output : function.outputs) value(output);
  for (const auto& assign : function.assigns) {
    key.number(uint64_t(assign.external));
    value(assign.value);
  }
  return key.take();
}

}  // namespace tessera
