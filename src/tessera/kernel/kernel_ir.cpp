#include "tessera/kernel/kernel_ir.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <span>
#include <type_traits>
#include <utility>

namespace tessera {

namespace {

constexpr std::array<std::string_view, 5> kReduceNames = {"sum", "prod", "max", "min", "argmax"};
constexpr std::array<std::string_view, 7> kKindNames = {"constant", "index",  "load", "scalar",
                                                        "cast",     "reduce", "store"};

bool has_address(const IrInst& inst) {
  return inst.kind == IrKind::load || inst.kind == IrKind::store || inst.kind == IrKind::index;
}

// Appends numbers, each closed by a separator, so that different sequences never read alike.
class KeyWriter {
 public:
  KeyWriter& put(int64_t value) {
    char digits[24];
    const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
    text_.append(digits, end).push_back(',');
    return *this;
  }
  KeyWriter& put(const Dims& dims) {
    put(dims.rank());
    for (const int64_t value : dims) put(value);
    return *this;
  }
  template <class E>
  requires std::is_enum_v<E> KeyWriter& put(E value) { return put(static_cast<int64_t>(value)); }
  void end_of_line() { text_.push_back('\n'); }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

// Only what the kind reads goes into the key: leftovers in other fields must not split the cache.
void put_inst(KeyWriter& key, const IrInst& inst) {
  key.put(inst.kind).put(inst.level);
  if (inst.kind != IrKind::store) key.put(inst.dtype);
  for (const int arg : inst.args) key.put(arg);
  if (inst.kind == IrKind::constant) key.put(static_cast<int64_t>(inst.bits));
  if (inst.kind == IrKind::scalar) key.put(inst.op);
  if (inst.kind == IrKind::cast) key.put(inst.round_to);
  if (inst.kind == IrKind::reduce) key.put(inst.reduce);
  if (has_address(inst)) key.put(inst.operand).put(inst.strides).put(inst.offset);
  if (inst.kind == IrKind::load) {
    key.put(inst.masked).put(inst.indexed);
    if (inst.masked) key.put(inst.low).put(inst.high);
    if (inst.indexed) key.put(inst.index_stride).put(inst.index_limit);
  }
  key.end_of_line();
}

std::string constant_text(const IrInst& inst) {
  if (!is_float(inst.dtype)) return cat(scalar_as_int(inst.dtype, inst.bits));
  char digits[32];
  const double value = scalar_as_double(inst.dtype, inst.bits);
  return {digits, std::to_chars(digits, digits + sizeof digits, value).ptr};
}

std::string address_text(const IrInst& inst) {
  std::string text = cat("[", inst.offset, " + ", inst.strides);
  if (inst.indexed) {
    text += cat(" + r", inst.args[1], " in [0, ", inst.index_limit, ") * ", inst.index_stride);
  }
  text += "]";
  if (inst.masked) {
    text += cat(" within [", inst.low, ", ", inst.high, ") else r", inst.args[0]);
  }
  return text;
}

std::string body_text(const IrInst& inst) {
  std::string text(label(inst));
  switch (inst.kind) {
    case IrKind::constant: return cat(text, " ", constant_text(inst));
    case IrKind::index: return cat(text, " ", address_text(inst));
    case IrKind::load: return cat(text, " ", inst.operand, " ", address_text(inst));
    case IrKind::store:
      return cat(text, " ", inst.operand, " ", address_text(inst), " r", inst.args[0]);
    case IrKind::cast:
      if (inst.round_to != inst.dtype) text += cat("(", inst.round_to, ")");
      break;
    default: break;
  }
  const char* separator = " ";
  for (const int arg : inst.args) {
    if (arg < 0) continue;
    text += cat(separator, "r", arg);
    separator = ", ";
  }
  return text;
}

}  // namespace

int KernelIR::add_operand(DType dtype, bool is_output) {
  // Not push_back: gcc 13 takes its reallocation of so small a struct for an overflow.
  operands.resize(operands.size() + 1);
  operands.back() = {dtype, is_output};
  return int(operands.size()) - 1;
}

bool KernelIR::is_map() const {
  return std::none_of(insts.begin(), insts.end(),
                      [](const IrInst& inst) { return inst.kind == IrKind::reduce; });
}

int64_t KernelIR::outer_count() const {
  return numel(Shape(std::span(extents.begin(), static_cast<size_t>(inner))));
}

int64_t KernelIR::inner_count() const {
  return numel(Shape(std::span(extents.begin() + inner, extents.end())));
}

std::string key(const KernelIR& ir) {
  KeyWriter key;
  Dims extents = ir.extents;
  if (!extents.empty()) extents[0] = -1;
  key.put(extents).put(ir.inner).end_of_line();
  for (const IrOperand& operand : ir.operands) key.put(operand.dtype).put(operand.is_output);
  key.end_of_line();
  for (const IrInst& inst : ir.insts) put_inst(key, inst);
  return key.take();
}

std::string to_string(const KernelIR& ir) {
  std::string text = cat("kernel ", ir.name, ": extents ", ir.extents, ", inner ", ir.inner, "\n");
  for (size_t i = 0; i < ir.operands.size(); ++i) {
    const IrOperand& operand = ir.operands[i];
    text += cat("  operand ", i, ": ", operand.is_output ? "out " : "in ", operand.dtype, "\n");
  }
  for (size_t i = 0; i < ir.insts.size(); ++i) {
    const IrInst& inst = ir.insts[i];
    const char* level = inst.level == IrLevel::row ? "row" : "elem";
    text += inst.kind == IrKind::store
                ? cat("  ", body_text(inst), " : ", level, "\n")
                : cat("  r", i, " = ", body_text(inst), " : ", inst.dtype, " ", level, "\n");
  }
  return text;
}

std::string_view name(ReduceOp op) { return kReduceNames[static_cast<size_t>(op)]; }

std::string_view label(const IrInst& inst) {
  if (inst.kind == IrKind::scalar) return name(inst.op);
  if (inst.kind == IrKind::reduce) return name(inst.reduce);
  return kKindNames[static_cast<size_t>(inst.kind)];
}

}  // namespace tessera
