#include "tessera/graph/print.h"

#include <array>
#include <charconv>
#include <string_view>
#include <unordered_map>

#include "tessera/graph/scope.h"

namespace tessera {

namespace {

enum class Field { a, b, c, axis, bits };

// How the 8 bytes of Attrs::bits read.
enum class Bits { none, value, f64, number };

struct AttributeRow {
  Op op;
  Field field;
  std::string_view name;
  Bits bits = Bits::none;
};

// Only what the printed types leave open: a reshape's shape is its type.
constexpr AttributeRow kAttributes[] = {
    {Op::constant, Field::bits, "value", Bits::value},
    {Op::iota, Field::axis, "axis"},
    {Op::sum, Field::a, "axes"},
    {Op::prod, Field::a, "axes"},
    {Op::max, Field::a, "axes"},
    {Op::min, Field::a, "axes"},
    {Op::argmax, Field::a, "axes"},
    {Op::permute, Field::a, "permutation"},
    {Op::slice, Field::a, "starts"},
    {Op::slice, Field::c, "steps"},
    {Op::window, Field::axis, "axis"},
    {Op::window, Field::a, "size_step"},
    {Op::pad, Field::a, "before"},
    {Op::pad, Field::b, "after"},
    {Op::pad, Field::bits, "value", Bits::value},
    {Op::concat, Field::axis, "axis"},
    {Op::gather, Field::axis, "axis"},
    {Op::dynamic_slice, Field::axis, "axis"},
    {Op::scatter_add, Field::axis, "axis"},
    {Op::scatter, Field::axis, "axis"},
    {Op::dynamic_update_slice, Field::axis, "axis"},
    {Op::region_enter, Field::bits, "region", Bits::number},
    {Op::region_exit, Field::bits, "region", Bits::number},
    {Op::custom_vjp, Field::axis, "inputs"},
    {Op::cumsum, Field::axis, "axis"},
    {Op::cumprod, Field::axis, "axis"},
    {Op::sort, Field::axis, "descending"},
    {Op::topk, Field::axis, "largest"},
    {Op::layer_norm, Field::bits, "epsilon", Bits::f64},
    {Op::linear, Field::axis, "activation"},
    {Op::attention, Field::axis, "options"},
    {Op::attention, Field::bits, "scale", Bits::f64},
    {Op::attention_backward, Field::axis, "options"},
    {Op::attention_backward, Field::bits, "scale", Bits::f64},
    {Op::custom, Field::bits, "definition", Bits::number},
};

struct KindColor {
  OpKind kind;
  std::string_view color;
};

constexpr KindColor kColors[] = {
    {OpKind::scalar, "#d9ead3"}, {OpKind::source, "#eeeeee"},  {OpKind::reduce, "#fce5cd"},
    {OpKind::move, "#ffffff"},   {OpKind::index, "#fff2cc"},   {OpKind::assemble, "#d0e0e3"},
    {OpKind::update, "#f4cccc"}, {OpKind::product, "#cfe2f3"}, {OpKind::marker, "#f3f3f3"},
    {OpKind::kernel, "#d9d2e9"},
};

std::string_view color(OpKind kind) {
  for (const KindColor& row : kColors) {
    if (row.kind == kind) return row.color;
  }
  TESSERA_ASSERT(!"an OpKind without a colour");
  return {};
}

// The shortest text that reads back as the same number of the type.
template <class T>
std::string shortest(T value) {
  std::array<char, 64> text;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  return std::string(text.data(), end);
}

std::string scalar_text(DType dtype, uint64_t bits) {
  if (dtype == DType::boolean) return scalar_as_int(dtype, bits) != 0 ? "true" : "false";
  if (!is_float(dtype)) return std::to_string(scalar_as_int(dtype, bits));
  const double value = scalar_as_double(dtype, bits);
  return dtype == DType::f64 ? shortest(value) : shortest(static_cast<float>(value));
}

std::string bits_text(const Node& node, Bits bits) {
  switch (bits) {
    case Bits::value: return scalar_text(node.types[0].dtype, node.attrs.bits);
    case Bits::f64: return scalar_text(DType::f64, node.attrs.bits);
    case Bits::number: return std::to_string(node.attrs.bits);
    case Bits::none: break;
  }
  TESSERA_ASSERT(!"bits without a reading");
  return {};
}

std::string field_text(const Node& node, const AttributeRow& row) {
  switch (row.field) {
    case Field::a: return to_string(node.attrs.a);
    case Field::b: return to_string(node.attrs.b);
    case Field::c: return to_string(node.attrs.c);
    case Field::axis: return std::to_string(node.attrs.axis);
    case Field::bits: return bits_text(node, row.bits);
  }
  return {};
}

// Each attribute as "name=text" after `before`.
std::string attributes_text(const Node& node, std::string_view before) {
  std::string text;
  for (const AttributeRow& row : kAttributes) {
    if (row.op == node.op) text += cat(before, row.name, "=", field_text(node, row));
  }
  return text;
}

std::string types_text(const Node& node, std::string_view between) {
  std::string text;
  for (const Type& type : node.types) {
    if (!text.empty()) text += between;
    text += to_string(type);
  }
  return text;
}

// Numbers per node: of its first output for text, of the node itself for Graphviz.
using Numbers = std::unordered_map<const Node*, size_t>;

std::string value_list(std::span<const Value> values, const Numbers& numbers) {
  std::string text;
  for (const Value& value : values) {
    text += text.empty() ? " %" : ", %";
    text += std::to_string(numbers.at(value.node.get()) + size_t(value.out));
  }
  return text;
}

std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + '"';
}

std::string dot_node(const Node& node, size_t number) {
  const std::string_view newline = "\\n";
  const std::string label =
      cat(name(node.op), newline, types_text(node, newline), attributes_text(node, newline));
  std::string text =
      cat("  n", number, " [label=\"", label, "\", fillcolor=\"", color(info(node.op).kind), "\"");
  if (node.scope != 0) text += ", tooltip=" + quoted(scope_path(node.scope));
  return text + "];\n";
}

std::string dot_edge(const Value& from, const std::string& to, const Numbers& numbers,
                     const std::string& head) {
  std::string labels;
  if (from.node->types.size() > 1) labels += cat("taillabel=", from.out);
  if (!head.empty()) labels += cat(labels.empty() ? "" : ", ", "headlabel=", head);
  if (!labels.empty()) labels = " [" + labels + "]";
  return cat("  n", numbers.at(from.node.get()), " -> ", to, labels, ";\n");
}

}  // namespace

std::string to_text(std::span<const Value> outputs) {
  std::string text;
  Numbers numbers;
  size_t next = 0;
  for (const NodePtr& node : topological_order(outputs)) {
    numbers[node.get()] = next;
    for (size_t i = 0; i < node->types.size(); ++i) text += cat(i == 0 ? "%" : ", %", next++);
    text += cat(" = ", name(node->op), " ", types_text(*node, ", "),
                value_list(node->inputs(), numbers), attributes_text(*node, " "));
    if (node->scope != 0) text += "  # " + scope_path(node->scope);
    text += '\n';
  }
  return text + "return" + value_list(outputs, numbers) + '\n';
}

std::string to_dot(std::span<const Value> outputs) {
  std::string text =
      "digraph tessera {\n"
      "  node [shape=box, style=\"rounded,filled\", fontname=\"Helvetica\"];\n";
  Numbers numbers;
  for (const NodePtr& node : topological_order(outputs)) {
    const size_t number = numbers.size();
    numbers[node.get()] = number;
    text += dot_node(*node, number);
    const bool ordered = node->inputs().size() > 1 && !info(node->op).commutative;
    for (size_t i = 0; i < node->inputs().size(); ++i) {
      text +=
          dot_edge(node->inputs()[i], cat("n", number), numbers, ordered ? std::to_string(i) : "");
    }
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::string number = cat("out", i);
    text += cat("  ", number, " [label=\"output ", i, "\", shape=plaintext, style=\"\"];\n");
    text += dot_edge(outputs[i], number, numbers, "");
  }
  return text + "}\n";
}

}  // namespace tessera
