#include "tessera/codegen/render.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "tessera/codegen/address.h"
#include "tessera/codegen/fold.h"
#include "tessera/codegen/phases.h"
#include "tessera/codegen/prelude.h"
#include "tessera/codegen/text.h"

namespace tessera {

namespace {

// A C identifier that collides with no function of a dialect.
std::string entry_name(const std::string& name) {
  constexpr size_t kLongest = 64;
  std::string entry = "tessera_";
  for (const char c : name.substr(0, kLongest)) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    entry += plain ? c : '_';
  }
  return entry;
}

// "// max sub exp sum div over (extent0 | 128)": outer and inner dimensions.
std::string comment(const KernelIR& ir) {
  std::string name = ir.name;
  // A line break would end the comment, and a backslash at its end would continue it.
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c < ' ' || c > '~' || c == '\\'; }, ' ');
  std::string domain = "(extent0";
  if (!ir.is_map() && ir.inner == 0) domain = "(| extent0";
  for (int i = 1; i < ir.extents.rank(); ++i) {
    domain += cat(!ir.is_map() && i == ir.inner ? " | " : ", ", ir.extents[i]);
  }
  return cat("// ", name, " over ", domain, ")\n");
}

// The inner extents may shrink the group; extents[0] may not, because one text serves all its
// values.
int choose_group_size(const KernelIR& ir, int largest) {
  constexpr int kSmallest = 32;
  if (ir.is_map() || ir.inner == 0) return largest;
  const int points = int(std::min<int64_t>(ir.inner_count(), largest));
  return std::min(largest, std::max(kSmallest, int(std::bit_ceil(unsigned(points)))));
}

class Renderer {
 public:
  Renderer(const KernelIR& ir, const Dialect& dialect, int group_size)
      : ir_(ir),
        dialect_(dialect),
        group_size_(group_size),
        addressing_(ir),
        folds_(ir, dialect, group_size) {}

  std::string kernel(const std::string& entry) {
    std::string text = comment(ir_);
    text += cat(replace_all(dialect_.kernel, "$group", cat(group_size_)), " ", entry, "(\n");
    for (size_t i = 0; i < ir_.operands.size(); ++i) {
      const IrOperand& operand = ir_.operands[i];
      text += cat("    ", dialect_.global, operand.is_output ? "" : "const ",
                  storage_type(operand.dtype), "* ", operand_name(int(i)), ",\n");
    }
    text += cat("    i64 extent0, ", dialect_.global, "i32* error) {\n");
    return text + (ir_.is_map() ? map_body() : row_body()) + "}\n";
  }

 private:
  const IrInst& inst(int i) const { return ir_.insts[size_t(i)]; }
  std::string reg(int i) const { return register_name(ir_, i); }
  std::string operand_name(int i) const {
    return cat(ir_.operands[size_t(i)].is_output ? "out" : "in", i);
  }

  std::string map_body() {
    std::string body;
    const std::vector<Phase> phases = plan_phases(ir_);
    for (const int i : phases[0].elems) body += define(i, "    ");
    body += stores(IrLevel::elem, "    ");
    std::string text = cat("  const i64 count = ", addressing_.count("point"), ";\n");
    text += cat("  const i64 first = ", dialect_.group_index, " * ", group_size_, " + ",
                dialect_.lane, ";\n");
    text += cat("  const i64 stride = ", dialect_.group_count, " * ", group_size_, ";\n");
    text += "  for (i64 point = first; point < count; point += stride) {\n";
    return text + addressing_.coordinates("point", "    ") + body + "  }\n";
  }

  std::string row_body() {
    std::string body;
    const std::vector<Phase> phases = plan_phases(ir_);
    for (size_t i = 0; i < phases.size(); ++i) {
      for (const int row : phases[i].rows) body += define(row, "    ");
      if (i + 1 < phases.size()) body += loop(phases[i], i + 2 == phases.size());
    }
    const std::string row_stores = stores(IrLevel::row, "      ");
    if (!row_stores.empty()) body += cat("    if (lane == 0) {\n", row_stores, "    }\n");
    std::string text = folds_.scratch();
    text += cat("  const i64 rows = ", addressing_.count("row"), ";\n");
    text += cat("  const i64 cols = ", addressing_.count("col"), ";\n");
    text += cat("  const i32 lane = ", dialect_.lane, ";\n");
    text += cat("  const i64 stride = ", dialect_.group_count, ";\n");
    text += cat("  for (i64 row = ", dialect_.group_index, "; row < rows; row += stride) {\n");
    return text + addressing_.coordinates("row", "    ") + body + "  }\n";
  }

  std::string loop(const Phase& phase, bool is_last) {
    std::string starts, body, ends;
    for (const int i : phase.elems) body += define(i, "      ");
    for (const int i : phase.reduces) {
      starts += folds_.start(i);
      body += folds_.step(i);
      ends += folds_.end(i);
    }
    if (is_last) body += stores(IrLevel::elem, "      ");
    return cat(starts, "    for (i64 col = lane; col < cols; col += ", group_size_, ") {\n",
               addressing_.coordinates("col", "      "), body, "    }\n", ends);
  }

  std::string define(int i, const std::string& indent) {
    if (inst(i).indexed) return define_indexed(i, indent);
    return cat(indent, "const ", register_type(inst(i).dtype), " ", reg(i), " = ", value(i), ";\n");
  }

  std::string value(int i) {
    const IrInst& it = inst(i);
    switch (it.kind) {
      case IrKind::constant: return literal(it.dtype, it.bits);
      case IrKind::index: return addressing_.address(it, "");
      case IrKind::load: return loaded(it);
      case IrKind::cast:
        return cast_expression(inst(it.args[0]).dtype, it.round_to, reg(it.args[0]));
      case IrKind::scalar: {
        const auto operand = [&](int k) { return it.args[k] < 0 ? "" : reg(it.args[k]); };
        return scalar_expression(it.op, inst(it.args[0]).dtype, operand(0), operand(1), operand(2));
      }
      case IrKind::reduce:
      case IrKind::store: break;
    }
    TESSERA_ASSERT(!"a reduce or a store has no plain value");
    return "";
  }

  std::string element(const IrInst& it) {
    const std::string index = it.indexed ? reg(it.args[1]) : "";
    return cat(operand_name(it.operand), "[", addressing_.address(it, index), "]");
  }

  std::string loaded(const IrInst& it) {
    const std::string read = from_storage(ir_.operands[size_t(it.operand)].dtype, element(it));
    const std::string condition = it.masked ? addressing_.mask(it) : "";
    if (condition.empty()) return read;
    return cat(condition, " ? ", read, " : ", reg(it.args[0]));
  }

  // Inside the mask the index must be in range; outside of it nothing looks at the index.
  std::string define_indexed(int i, const std::string& indent) {
    const IrInst& it = inst(i);
    const std::string index = reg(it.args[1]);
    const std::string condition = it.masked ? addressing_.mask(it) : "";
    const std::string other = it.masked ? reg(it.args[0]) : literal(it.dtype, 0);
    const std::string guard = condition.empty() ? "" : cat(condition, " && ");
    const std::string read = from_storage(ir_.operands[size_t(it.operand)].dtype, element(it));
    const std::string in_range = cat(index, " >= 0 && ", index, " < ", it.index_limit);
    return cat(indent, register_type(it.dtype), " ", reg(i), " = ", other, ";\n",  //
               indent, "if (", guard, in_range, ") {\n",                           //
               indent, "  ", reg(i), " = ", read, ";\n",                           //
               indent, "} else ", condition.empty() ? "" : cat("if (", condition, ") "),
               "{\n",  //
               indent, "  *error = 1;\n", indent, "}\n");
  }

  std::string stores(IrLevel level, const std::string& indent) {
    std::string text;
    for (const IrInst& it : ir_.insts) {
      if (it.kind != IrKind::store || it.level != level) continue;
      const DType dtype = ir_.operands[size_t(it.operand)].dtype;
      text += cat(indent, element(it), " = ", to_storage(dtype, reg(it.args[0])), ";\n");
    }
    return text;
  }

  const KernelIR& ir_;
  const Dialect& dialect_;
  const int group_size_;
  Addressing addressing_;
  FoldWriter folds_;
};

}  // namespace

int64_t RenderedKernel::group_count(const KernelIR& ir, int64_t extent0) const {
  const bool is_map = ir.is_map();
  int64_t points = 1;
  for (int i = 0; i < (is_map ? ir.extents.rank() : ir.inner); ++i) {
    points *= i == 0 ? extent0 : ir.extents[i];
  }
  const int64_t per_group = is_map ? group_size : 1;
  const int64_t groups = points / per_group + (points % per_group != 0 ? 1 : 0);
  // What both APIs take in their first dimension; the kernels walk on from there.
  return std::min<int64_t>(groups, std::numeric_limits<int32_t>::max());
}

RenderedKernel render(const KernelIR& ir, const Dialect& dialect, const RenderOptions& options) {
  TESSERA_ASSERT(verify(ir).empty());
  TESSERA_ASSERT(options.max_group_size > 0 &&
                 std::has_single_bit(unsigned(options.max_group_size)));
  RenderedKernel kernel;
  kernel.entry = entry_name(ir.name);
  kernel.group_size = choose_group_size(ir, options.max_group_size);
  const std::string text = Renderer(ir, dialect, kernel.group_size).kernel(kernel.entry);
  kernel.source = prelude(text, dialect) + "\n" + text;
  return kernel;
}

}  // namespace tessera
