#include "tessera/codegen/body.h"

#include <algorithm>

namespace tessera {

std::string BodyWriter::operand_name(int i) const {
  return cat(ir_.operands[size_t(i)].is_output ? "out" : "in", i);
}

std::string BodyWriter::operand_type(int i) const {
  const IrOperand& operand = ir_.operands[size_t(i)];
  return cat(dialect_.global, operand.is_output ? "" : "const ", storage_type(operand.dtype));
}

std::string BodyWriter::rows(const std::vector<int>& insts, const std::string& indent) {
  addressing_.set_neighbours(false);
  std::string text;
  for (const int i : insts) text += define(i, indent);
  return text;
}

std::string BodyWriter::row_stores(const std::string& indent) {
  addressing_.set_neighbours(false);
  std::string text;
  for (const IrInst& it : ir_.insts) {
    if (it.kind == IrKind::store && it.level == IrLevel::row) text += store(it, indent);
  }
  return text;
}

std::string BodyWriter::points(const Phase& phase, std::string_view variable, int width,
                               const std::string& guard, const std::string& indent) {
  if (width == 1) {
    addressing_.set_neighbours(false);
    const std::string body = one_point(phase, width, guard, indent);
    return addressing_.take_coordinates(variable, indent) + body;
  }
  addressing_.set_neighbours(false);
  return wide_points(phase, variable, width, guard, wide_loads(phase, width, indent), indent);
}

std::string BodyWriter::wide_loads(const Phase& phase, int width, const std::string& indent) {
  std::string loads;
  for (const int i : phase.elems) {
    if (!is_wide(i, width)) continue;
    loads += cat(indent, "const ", wide_type(i, width), " wide_", i, " = ", wide_access(i, width),
                 ";\n");
  }
  return loads;
}

std::string BodyWriter::wide_points(const Phase& phase, std::string_view variable, int width,
                                    const std::string& guard, std::string loads,
                                    const std::string& indent) {
  std::string stores, declared;
  for (const int i : phase.stores) {
    if (!is_wide(i, width)) continue;
    declared += cat(indent, wide_type(i, width), " wide_", i, ";\n");
    stores +=
        cat(indent, guard.empty() ? "" : cat("if (", guard, ") "), wide_store(i, width), "\n");
  }
  for (const int i : phase.recalled) {
    if (plan_.row_bytes == 0 || !is_wide(i, width)) continue;
    loads +=
        cat(indent, "const ", wide_type(i, width), " wide_", i, " = ", row_access(i, width), ";\n");
  }
  for (const int i : phase.kept) {
    if (plan_.row_bytes == 0 || !is_wide(i, width)) continue;
    loads += cat(indent, row_access(i, width), " = wide_", i, ";\n");
  }
  addressing_.set_neighbours(true);
  const std::string body = one_point(phase, width, guard, indent + "  ");
  return cat(addressing_.take_coordinates(variable, indent), loads, declared, unroll(indent),
             indent, "for (i32 v = 0; v < ", width, "; ++v) {\n", body, indent, "}\n", stores);
}

std::string BodyWriter::turns(const Phase& phase, const std::string& point, std::string_view end) {
  const int width = plan_.width;
  const std::string indent = "      ";
  addressing_.set_neighbours(false);
  std::string declared, ahead, taken;
  for (const int i : phase.elems) {
    if (!is_wide(i, width)) continue;
    declared += cat("  ", wide_type(i, width), " ahead_", i, "[", plan_.turns, "];\n");
    ahead += cat(indent, "ahead_", i, "[t] = ", wide_access(i, width), ";\n");
    taken += cat(indent, "const ", wide_type(i, width), " wide_", i, " = ahead_", i, "[t];\n");
  }
  const auto each = [&](const std::string& body) {
    return cat(unroll("  "), "  for (i32 t = 0; t < ", plan_.turns, "; ++t) {\n",
               "    const idx point = ", point, ";\n    if (point < ", end, ") {\n", body,
               "    }\n  }\n");
  };
  const std::string coordinates = addressing_.take_coordinates("point", indent);
  const std::string reads = ahead.empty() ? "" : declared + each(coordinates + ahead);
  return reads + each(wide_points(phase, "point", width, "", taken, indent));
}

// What a point's stores and folds need, and the folds.
std::string BodyWriter::values(const Phase& phase, int width, const std::string& indent) {
  std::string text;
  for (const int i : phase.recalled) {
    text += cat(indent, "const ", register_type(inst(i).dtype), " ", reg(i), " = ",
                kept_value(i, width), ";\n");
  }
  for (const int i : phase.elems) {
    if (is_wide(i, width)) {
      const DType dtype = ir_.operands[size_t(inst(i).operand)].dtype;
      text += cat(indent, "const ", register_type(inst(i).dtype), " ", reg(i), " = ",
                  from_storage(dtype, cat("wide_", i, ".v[v]")), ";\n");
    } else {
      text += define(i, indent);
    }
  }
  for (const int i : phase.kept) text += keep(i, width, indent);
  for (const int i : phase.reduces) text += folds_.step(i, width > 1 ? "col + v" : "col", indent);
  return text;
}

std::string BodyWriter::one_point(const Phase& phase, int width, const std::string& guard,
                                  const std::string& indent) {
  std::string text = values(phase, width, indent);
  std::string stores;
  const std::string inside = guard.empty() ? indent : indent + "  ";
  for (const int i : phase.stores) {
    if (!is_wide(i, width)) {
      stores += store(inst(i), inside);
      continue;
    }
    const DType dtype = ir_.operands[size_t(inst(i).operand)].dtype;
    text += cat(indent, "wide_", i, ".v[v] = ", to_storage(dtype, reg(inst(i).args[0])), ";\n");
  }
  if (stores.empty() || guard.empty()) return text + stores;
  return cat(text, indent, "if (", guard, ") {\n", stores, indent, "}\n");
}

// How far apart neighbouring columns of a row lie, where one dimension alone moves.
int64_t BodyWriter::column_stride(const IrInst& it) const {
  int dim = ir_.extents.rank() - 1;
  while (dim > ir_.inner && ir_.extents[dim] == 1) --dim;
  return it.strides[dim];
}

bool BodyWriter::reads_apart(const Phase& phase) const {
  return std::any_of(phase.elems.begin(), phase.elems.end(), [this](int i) {
    return inst(i).kind == IrKind::load && column_stride(inst(i)) != 0 && !plan_.wide[size_t(i)];
  });
}

std::string BodyWriter::spaced_points(const Phase& phase, int count, int64_t step,
                                      const std::string& indent) {
  addressing_.set_neighbours(false);
  const std::string inside = indent + "  ";
  const auto each = [&](const std::string& body) {
    if (body.empty()) return body;
    return cat(unroll(indent), indent, "for (i32 v = 0; v < ", count, "; ++v) {\n", inside,
               "const idx col = first_col + v * ", step, ";\n",
               addressing_.take_coordinates("col", inside), body, indent, "}\n");
  };
  std::string declared = cat(indent, "const idx first_col = col;\n"), stores;
  std::string body = values(phase, 1, inside);
  for (const int i : phase.stores) {
    const DType dtype = stored_type(i);
    declared += cat(indent, storage_type(dtype), " spaced_", i, "[", count, "];\n");
    body += cat(inside, "spaced_", i, "[v] = ", to_storage(dtype, reg(inst(i).args[0])), ";\n");
  }
  body = each(body);
  for (const int i : phase.stores) {
    stores += cat(inside, element(inst(i)), " = spaced_", i, "[v];\n");
  }
  return declared + body + each(stores);
}

std::string BodyWriter::read_ahead(const Phase& phase, const std::string& indent) const {
  std::string text;
  for (const int i : phase.kept) {
    const IrInst& it = inst(i);
    const int step = kPrefetched / size_of(stored_type(i));
    if (column_stride(it) != 1) continue;
    const std::string place =
        cat(operand_name(it.operand), it.offset == 0 ? "" : cat(" + ", it.offset),
            " + (row + stride) * ", it.strides[0], " + col");
    text += cat(indent, "  for (idx col = lane * ", step,
                "; col < cols; col += ", int64_t{plan_.group_size} * step, ") {\n", indent, "    ",
                replace_all(dialect_.prefetch, "$address", place), "\n", indent, "  }\n");
  }
  return text.empty() ? "" : cat(indent, "if (row + stride < rows) {\n", text, indent, "}\n");
}

// In local memory a value lies as it is stored; wide ones come and go as a whole, see points().
std::string BodyWriter::kept_value(int i, int width) const {
  if (plan_.row_bytes == 0) return kept_place(i, width);
  return from_storage(stored_type(i),
                      is_wide(i, width) ? cat("wide_", i, ".v[v]") : kept_place(i, width));
}

std::string BodyWriter::keep(int i, int width, const std::string& indent) const {
  if (plan_.row_bytes == 0) return cat(indent, kept_place(i, width), " = ", reg(i), ";\n");
  if (is_wide(i, width)) return "";
  return cat(indent, kept_place(i, width), " = ", to_storage(stored_type(i), reg(i)), ";\n");
}

std::string BodyWriter::row_access(int i, int width) const {
  return cat("*(", dialect_.shared_pointer, wide_type(i, width), "*)(row_", reg(i), " + col",
             plan_.shifted < 0 ? "" : " + shift", ")");
}

std::string BodyWriter::row_arrays() const {
  if (plan_.row_bytes == 0) return "";
  std::string text = cat("  ",
                         replace_all(replace_all(dialect_.row_memory, "$name", "row_memory"),
                                     "$bytes", cat(plan_.row_bytes)),
                         "\n");
  int64_t start = 0;
  for (const Phase& phase : plan_.phases) {
    for (const int i : phase.kept) {
      const std::string type = cat(dialect_.shared_pointer, storage_type(stored_type(i)), "*");
      text += cat("  ", type, " const row_", reg(i), " = (", type, ")(row_memory",
                  start == 0 ? "" : cat(" + ", start), ");\n");
      start += row_array_bytes(ir_, plan_, i);
    }
  }
  return text;
}

std::string BodyWriter::shift(const std::string& indent) {
  if (plan_.shifted < 0) return "";
  addressing_.set_neighbours(false);
  IrInst first = inst(plan_.shifted);
  for (int i = ir_.inner; i < ir_.extents.rank(); ++i) first.strides[i] = 0;
  return cat(indent, "const idx shift = (", addressing_.address(first, ""), ") % ", plan_.width,
             ";\n", indent, "const idx last = (cols + shift - 1) / ", plan_.width, ";\n");
}

std::vector<bool> BodyWriter::needs_exactness(const KernelIR& ir) {
  std::vector<bool> exact(ir.insts.size(), false);
  for (size_t i = ir.insts.size(); i-- > 0;) {
    const IrInst& it = ir.insts[i];
    const bool stores = it.kind == IrKind::store && !is_half(ir.operands[size_t(it.operand)].dtype);
    for (const int arg : it.args) {
      if (arg < 0) continue;
      // What is no float was decided by its arguments.
      const bool decides = it.kind != IrKind::store && !is_float(it.dtype);
      if (stores || exact[i] || decides) exact[size_t(arg)] = true;
    }
  }
  return exact;
}

int BodyWriter::row_divisor(int i) const {
  const IrInst& it = inst(i);
  const bool divides = it.kind == IrKind::scalar && it.op == ScalarOp::div &&
                       it.level == IrLevel::elem && it.dtype == DType::f32;
  return divides && inst(it.args[1]).level == IrLevel::row ? it.args[1] : -1;
}

std::string BodyWriter::divisors(const Phase& phase, const std::string& indent) {
  std::string text;
  for (const int i : phase.elems) {
    const int divisor = row_divisor(i);
    if (divisor < 0) continue;
    if (std::find(divisors_.begin(), divisors_.end(), divisor) != divisors_.end()) continue;
    divisors_.push_back(divisor);
    text += cat(indent, "const f32 divisor_", divisor, " = t_divisor(", reg(divisor), ");\n");
  }
  return text;
}

std::string BodyWriter::quotient(int i) const {
  const std::string a = reg(inst(i).args[0]), b = reg(inst(i).args[1]);
  const bool is_exact = exact_[size_t(i)];
  if (const int row = row_divisor(i); row >= 0) {
    return cat(is_exact ? "t_quotient(" : "t_near_share(", a, ", ", b, ", divisor_", row, ")");
  }
  if (!is_exact) return cat("t_near_quotient(", a, ", ", b, ")");
  return cat(a, " / ", b);
}

std::string BodyWriter::kept_place(int i, int width) const {
  if (plan_.row_bytes > 0) {
    return cat("row_", reg(i), "[col", plan_.shifted < 0 ? "" : " + shift", width > 1 ? " + v" : "",
               "]");
  }
  const bool several = plan_.chunks > 1;
  const std::string place = width == 1 ? (several ? "k" : "0")
                            : several  ? cat("k * ", width, " + v")
                                       : "v";
  return cat("kept_", reg(i), "[", place, "]");
}

std::string BodyWriter::kept_arrays(const std::string& indent) const {
  std::string text;
  if (plan_.row_bytes > 0) return text;
  for (const Phase& phase : plan_.phases) {
    for (const int i : phase.kept) {
      text += cat(indent, register_type(inst(i).dtype), " kept_", reg(i), "[",
                  plan_.chunks * plan_.width, "];\n");
    }
  }
  return text;
}

std::string BodyWriter::wide_type(int i, int width) const {
  return cat(storage_type(ir_.operands[size_t(inst(i).operand)].dtype), "x", width);
}

std::string BodyWriter::wide_access(int i, int width) { return cat("*", wide_address(i, width)); }

std::string BodyWriter::wide_store(int i, int width) {
  const int bytes = width * size_of(ir_.operands[size_t(inst(i).operand)].dtype);
  const std::string value = cat("wide_", i);
  if (dialect_.put.empty() || plan_.shifted < 0 || bytes != 16) {
    return cat(wide_access(i, width), " = ", value, ";");
  }
  return replace_all(replace_all(dialect_.put, "$address", wide_address(i, width)), "$value",
                     value);
}

std::string BodyWriter::wide_address(int i, int width) {
  const int operand = inst(i).operand;
  const bool is_output = ir_.operands[size_t(operand)].is_output;
  return cat("(", dialect_.global, is_output ? "" : "const ", wide_type(i, width), "*)(",
             operand_name(operand), " + ", addressing_.address(inst(i), ""), ")");
}

std::string BodyWriter::define(int i, const std::string& indent) {
  if (inst(i).indexed) return define_indexed(i, indent);
  return cat(indent, "const ", register_type(inst(i).dtype), " ", reg(i), " = ", value(i), ";\n");
}

std::string BodyWriter::value(int i) {
  const IrInst& it = inst(i);
  switch (it.kind) {
    case IrKind::constant: return literal(it.dtype, it.bits);
    case IrKind::index: return addressing_.address(it, "");
    case IrKind::load: return loaded(it);
    case IrKind::cast: return cast_expression(inst(it.args[0]).dtype, it.round_to, reg(it.args[0]));
    case IrKind::scalar: {
      const auto operand = [&](int k) { return it.args[k] < 0 ? "" : reg(it.args[k]); };
      if (it.op == ScalarOp::div && it.dtype == DType::f32) return quotient(i);
      if (it.op == ScalarOp::exp && it.dtype == DType::f32 && !exact_[size_t(i)]) {
        return cat("t_near_exp(", operand(0), ")");
      }
      return scalar_expression(it.op, inst(it.args[0]).dtype, operand(0), operand(1), operand(2));
    }
    case IrKind::reduce:
    case IrKind::store: break;
  }
  TESSERA_ASSERT(!"a reduce or a store has no plain value");
  return "";
}

std::string BodyWriter::element(const IrInst& it) {
  const std::string index = it.indexed ? reg(it.args[1]) : "";
  return cat(operand_name(it.operand), "[", addressing_.address(it, index), "]");
}

std::string BodyWriter::loaded(const IrInst& it) {
  const std::string read = from_storage(ir_.operands[size_t(it.operand)].dtype, element(it));
  const std::string condition = it.masked ? addressing_.mask(it) : "";
  if (condition.empty()) return read;
  return cat(condition, " ? ", read, " : ", reg(it.args[0]));
}

// Inside the mask the index must be in range; outside of it nothing looks at the index.
std::string BodyWriter::define_indexed(int i, const std::string& indent) {
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

std::string BodyWriter::store(const IrInst& it, const std::string& indent) {
  const DType dtype = ir_.operands[size_t(it.operand)].dtype;
  return cat(indent, element(it), " = ", to_storage(dtype, reg(it.args[0])), ";\n");
}

}  // namespace tessera
