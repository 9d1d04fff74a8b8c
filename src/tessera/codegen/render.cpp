#include "tessera/codegen/render.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "tessera/codegen/body.h"
#include "tessera/codegen/parts.h"
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
  return cat("// ", name, " over ", domain, ")");
}

// A store rounds by itself: it takes what a cast to its type would round before.
KernelIR rounded_once(KernelIR ir) {
  for (IrInst& inst : ir.insts) {
    if (inst.kind != IrKind::store) continue;
    const IrInst& cast = ir.insts[size_t(inst.args[0])];
    const DType dtype = ir.operands[size_t(inst.operand)].dtype;
    const bool rounds = cast.kind == IrKind::cast && is_half(dtype) && cast.round_to == dtype;
    if (rounds && ir.insts[size_t(cast.args[0])].dtype == cast.dtype) inst.args[0] = cast.args[0];
  }
  return ir;
}

class Renderer {
 public:
  Renderer(const KernelIR& ir, const Dialect& dialect, const RenderOptions& options,
           const Plan& plan)
      : ir_(ir), dialect_(dialect), options_(options), plan_(plan), body_(ir, dialect, plan) {}

  std::string map(const std::string& entry) {
    const int width = plan_.width;
    std::string text = signature(comment(ir_), entry);
    text += cat("  const idx count = ", body_.addressing().count("point"), ";\n");
    text += cat("  const idx first = ", group_index(), " * ",
                plan_.group_size * std::max(plan_.turns, 1), " + ", dialect_.lane, ";\n");
    if (plan_.has_tail) text += cat("  const idx whole = count - count % ", width, ";\n");
    return text + (plan_.turns > 0 ? turns() : walk()) + "}\n";
  }

  // A kernel with reductions, or the first half of a split one.
  std::string rows(const std::string& entry) {
    const std::string& indent = kRowIndent;
    const std::vector<Phase>& phases = plan_.phases;
    std::string body = body_.kept_arrays(indent);
    for (size_t i = 0; i + 1 < phases.size(); ++i) {
      body += body_.rows(phases[i].rows, indent) + body_.divisors(phases[i], indent);
      body += loop(phases[i]);
      if (i == 0 && plan_.reads_ahead) body += body_.read_ahead(phases[i], kRowIndent);
    }
    // The next row is cut otherwise: other lanes write what these have kept in local memory.
    if (plan_.shifted >= 0 && plan_.row_bytes > 0) body += cat(indent, dialect_.barrier, "\n");
    const std::string place = is_single_row() ? "split" : "split * rows + row";
    if (options_.split) {
      body += first_lane(body_.folds().write_partial(place, indent + "  "));
    } else {
      body += body_.rows(phases.back().rows, indent);
      body += first_lane(body_.row_stores(indent + "  "));
    }
    return row_walk(comment(ir_) + (options_.split ? ", a part of each row" : ""), entry, body);
  }

  // The second half of a split kernel.
  std::string fold(const std::string& entry) {
    const std::string& indent = kRowIndent;
    const Phase& phase = plan_.phases[0];
    std::string body = body_.rows(phase.rows, indent);
    for (const int i : phase.reduces) body += body_.folds().start(i, indent);
    body += cat(indent, "for (idx s = ", plan_.parts > 1 ? "part" : "0",
                "; s < splits; s += ", plan_.parts, ") {\n",
                body_.folds().step_partial(is_single_row() ? "s" : "s * rows + row", indent + "  "),
                indent, "}\n", body_.folds().end(phase.reduces, indent));
    body += body_.rows(plan_.phases.back().rows, indent);
    body += first_lane(body_.row_stores(indent + "  "));
    is_fold_ = true;
    return row_walk(comment(ir_) + ", of the parts", entry, body);
  }

 private:
  inline static const std::string kRowIndent = "    ";
  static constexpr int kFewLanes = 256, kLargeGroup = 1024, kSpaced = 8;

  std::string signature(const std::string& title, const std::string& entry) const {
    const std::string group = cat(plan_.group_size);
    const bool is_alone = plan_.group_size > kFewLanes && plan_.group_size <= kLargeGroup &&
                          (plan_.row_bytes == 0 || 2 * plan_.row_bytes > options_.local_bytes);
    const std::string bounds =
        group + (is_alone ? cat(", ", kLargeGroup / plan_.group_size) : std::string());
    std::string kernel =
        replace_all(replace_all(dialect_.kernel, "$group", group), "$bounds", bounds);
    if (plan_.cluster > 1) {
      kernel += " " + replace_all(dialect_.cluster, "$groups", cat(plan_.cluster));
    }
    std::string text = cat(title, "\n", kernel, " ", entry, "(\n");
    if (options_.parts > 0) {
      return cat(text, table_parameters(dialect_), ") {\n",
                 enter_part(ir_, body_, dialect_, options_));
    }
    for (int i = 0; i < int(ir_.operands.size()); ++i) {
      text += cat("    ", body_.operand_type(i), "* ", body_.operand_name(i), ",");
      text += options_.operand_offsets ? cat(" i64 start", i, ",\n") : "\n";
    }
    text += cat("    i64 extent0, ", dialect_.global, "i32* error");
    if (options_.split) text += cat(", ", dialect_.global, "u64* scratch, i64 splits");
    text += ") {\n";
    for (int i = 0; options_.operand_offsets && i < int(ir_.operands.size()); ++i) {
      text += cat("  ", body_.operand_name(i), " += start", i, ";\n");
    }
    return text;
  }

  std::string_view group_index() const {
    return options_.parts > 0 ? "group" : dialect_.group_index;
  }
  std::string_view group_count() const {
    return options_.parts > 0 ? "groups" : dialect_.group_count;
  }

  std::string points(int width) {
    return body_.points(plan_.phases[0], "point", width, "", "    ");
  }
  std::string_view end_of_points() const { return plan_.has_tail ? "whole" : "count"; }

  // Over all points, with the stride of the launch.
  std::string walk() {
    const int width = plan_.width;
    const std::string times = width > 1 ? cat(" * ", width) : "";
    std::string text = cat("  const idx stride = ", group_count(), " * ", plan_.group_size, ";\n",
                           "  for (idx point = first", times, "; point < ", end_of_points(),
                           "; point += stride", times, ") {\n", points(width), "  }\n");
    if (!plan_.has_tail) return text;
    // A few points: unrolled, they would take more registers than all others.
    if (options_.parts > 0) text += "  #pragma unroll 1\n";
    return text + cat("  for (idx point = whole + first; point < count; point += stride) {\n",
                      points(1), "  }\n");
  }

  // So many accesses of each lane.
  std::string turns() {
    const int width = plan_.width;
    std::string text;
    if (plan_.turns == 1) {
      text = cat("  const idx point = first", width > 1 ? cat(" * ", width) : "", ";\n",
                 "  if (point < ", end_of_points(), ") {\n", points(width), "  }\n");
    } else {
      text = body_.turns(plan_.phases[0], cat("(first + t * ", plan_.group_size, ") * ", width),
                         end_of_points());
    }
    if (!plan_.has_tail) return text;
    return text + cat("  if (first < count - whole) {\n    const idx point = whole + first;\n",
                      points(1), "  }\n");
  }

  bool is_single_row() const { return ir_.inner == 0; }
  bool may_be_idle() const { return plan_.rows_per_group() > 1; }

  std::string first_lane(const std::string& stores) const {
    if (stores.empty()) return "";
    std::string condition = plan_.parts > 1 ? "part == 0" : "";
    if (may_be_idle()) condition += condition.empty() ? "is_mine" : " && is_mine";
    return cat(kRowIndent, "if (", condition.empty() ? "lane == 0" : condition, ") {\n", stores,
               kRowIndent, "}\n");
  }

  // What surrounds the work on one row.
  std::string row_walk(const std::string& title, const std::string& entry, std::string body) {
    const int rows = plan_.rows_per_group();
    const bool is_part = options_.split && !is_fold_;
    std::string text = signature(title, entry) + body_.folds().shared_arrays();
    if (!is_fold_) text += body_.row_arrays();
    const std::string shift = is_fold_ ? "" : body_.shift(kRowIndent);
    text += cat("  const idx rows = ", body_.addressing().count("row"), ";\n");
    if (body.find("cols") != std::string::npos) {
      text += cat("  const idx cols = ", body_.addressing().count("col"), ";\n");
    }
    if (body.find("whole") != std::string::npos) {
      text += cat("  const idx whole = cols - cols % ", plan_.width, ";\n");
    }
    text += cat("  const i32 lane = ", dialect_.lane, ";\n");
    // A row's parts are neighbours, or its neighbours are other rows.
    const bool columns = plan_.spread == Spread::columns;
    const std::string cluster = plan_.cluster > 1 ? cat(plan_.cluster) : "";
    if (!cluster.empty()) {
      text += cat("  const i32 part = (i32)(", group_index(), " % ", cluster, ") * ",
                  plan_.group_size, " + lane;\n");
    } else if (plan_.parts > 1) {
      text += cat("  const i32 part = lane",
                  rows == 1 ? ""
                  : columns ? cat(" / ", rows)
                            : cat(" % ", plan_.parts),
                  ";\n");
    }
    if (rows > 1) {
      text += cat("  const i32 team = lane",
                  plan_.parts == 1 ? ""
                  : columns        ? cat(" % ", rows)
                                   : cat(" / ", plan_.parts),
                  ";\n");
    }
    std::string group(group_index()), groups(group_count());
    if (is_part) {
      text += cat("  const idx split = ", group, " % (idx)splits;\n");
      group += " / (idx)splits", groups += " / (idx)splits";
    }
    if (!cluster.empty()) group += " / " + cluster, groups += " / " + cluster;
    const std::string times = rows > 1 ? cat(" * ", rows) : "";
    text += cat("  const idx stride = ", groups, times, ";\n");
    if (!cluster.empty()) text += cat("  ", dialect_.cluster_arrive, "\n");
    const std::string_view walker = rows > 1 ? "first" : "row";
    text += cat("  for (idx ", walker, " = ", group, times, "; ", walker, " < rows; ", walker,
                " += stride) {\n");
    if (rows > 1) {
      // Lanes without a row go along, because all must meet at the folds.
      text += "    const bool is_mine = first + team < rows;\n";
      text += "    const idx row = is_mine ? first + team : rows - 1;\n";
    }
    // No group leaves while others may still hand it something.
    const std::string leave = cluster.empty() ? "" : cat("  ", dialect_.cluster_wait, "\n");
    return cat(text, body_.addressing().take_coordinates("row", kRowIndent), shift, body, "  }\n",
               leave, "}\n");
  }

  std::string loop(const Phase& phase) {
    const std::string& indent = kRowIndent;
    std::string text;
    for (const int i : phase.reduces) text += body_.folds().start(i, indent);
    text += plan_.chunks > 0 ? kept_loop(phase) : reading_loop(phase);
    return text + body_.folds().end(phase.reduces, indent);
  }

  std::string guard() const { return may_be_idle() ? "is_mine" : ""; }

  // Over registers: the number of turns is known, and the compiler must see it.
  std::string kept_loop(const Phase& phase) {
    if (plan_.shifted >= 0) return kept_shifted_loop(phase);
    const int width = plan_.width;
    const int64_t covered = int64_t{plan_.chunks} * plan_.parts * width;
    const std::string step = cat(plan_.parts * width);
    std::string col = plan_.parts > 1 ? "part" : "0";
    if (width > 1 && plan_.parts > 1) col += cat(" * ", width);
    if (plan_.chunks > 1) col = plan_.parts > 1 ? cat("k * ", step, " + ", col) : cat("k * ", step);
    const bool is_full = covered == ir_.inner_count();
    const std::string inside = is_full ? "      " : "        ";
    std::string body = body_.points(phase, "col", width, guard(), inside);
    if (!is_full) body = cat("      if (col < cols) {\n", body, "      }\n");
    const std::string turns =
        cat(unroll("    "), "    for (i32 k = 0; k < ", plan_.chunks, "; ++k) {\n");
    const bool names_col = body.find("col") != std::string::npos;
    return cat(plan_.chunks > 1 ? turns : "    {\n",
               names_col ? cat("      const idx col = ", col, ";\n") : "", body, "    }\n");
  }

  // Its first turns are whole wherever the row starts.
  std::string kept_shifted_loop(const Phase& phase) {
    const int64_t whole = ((ir_.inner_count() - 1) / plan_.width - 1) / plan_.parts;
    std::string body = body_.points(phase, "col", plan_.width, guard(), "        ");
    if (body.find("col") != std::string::npos) {
      body = cat("        const idx col = access * ", plan_.width, " - shift;\n", body);
    }
    return cat(unroll("    "), "    for (i32 k = 0; k < ", plan_.chunks, "; ++k) {\n",
               "      const idx access = k * ", plan_.parts, " + part + 1;\n", "      if (k < ",
               whole, " || access < last) {\n", body, "      }\n    }\n", row_ends(phase));
  }

  std::string reading_loop(const Phase& phase) {
    const bool is_part = options_.split;
    std::string first = plan_.parts > 1 ? "part" : "0", step = cat(plan_.parts);
    if (is_part) {
      first = plan_.parts > 1 ? cat("(split * ", plan_.parts, " + part)") : "split";
      step = plan_.parts > 1 ? cat("(idx)splits * ", plan_.parts) : "(idx)splits";
    }
    const auto walk = [&](const std::string& from, const std::string& by, std::string_view end,
                          int width) {
      return cat("    for (idx col = ", from, "; col < ", end, "; col += ", by, ") {\n",
                 body_.points(phase, "col", width, guard(), "      "), "    }\n");
    };
    if (plan_.width == 1) return walk(first, step, "cols", 1);
    if (plan_.shifted >= 0) return shifted_loop(phase);
    const std::string times = cat(" * ", plan_.width);
    const std::string wide_step = is_part ? step + times : cat(plan_.parts * plan_.width);
    if (!plan_.has_tail) return walk(first + times, wide_step, "cols", plan_.width);
    return walk(first + times, wide_step, "whole", plan_.width) +
           walk("whole + " + first, step, "cols", 1);
  }

  std::string shifted_loop(const Phase& phase) {
    const int width = plan_.width;
    if (body_.reads_apart(phase)) return spaced_loop(phase);
    return cat("    for (idx access = part + 1; access < last; access += ", plan_.parts, ") {\n",
               "      const idx col = access * ", width, " - shift;\n",
               body_.points(phase, "col", width, guard(), "      "), "    }\n", row_ends(phase));
  }

  // What reaches over the ends of the row is taken element by element, by a lane each: by the last
  // ones, because the first have a turn more.
  std::string row_ends(const Phase& phase) {
    const int width = plan_.width;
    return cat("    if (part >= ", plan_.parts - 2 * width, ") {\n",
               "      const i32 end = part - ", plan_.parts - 2 * width, ";\n",
               "      const idx col = end < ", width, " ? end - shift : last * ", width,
               " - shift + end - ", width, ";\n", "      if (col >= 0 && col < cols) {\n",
               body_.points(phase, "col", 1, guard(), "        "), "      }\n    }\n");
  }

  // Where other rows than the shifted ones are read, a column each of neighbouring lanes: what lies
  // side by side is then read side by side. Several columns of a lane are on their way at once.
  std::string spaced_loop(const Phase& phase) {
    const int64_t reach = int64_t{plan_.parts} * (kSpaced - 1), step = reach + plan_.parts;
    return cat("    {\n      idx col = part;\n      for (; col + ", reach, " < cols; col += ", step,
               ") {\n", body_.spaced_points(phase, kSpaced, plan_.parts, "        "), "      }\n",
               "      for (; col < cols; col += ", plan_.parts, ") {\n",
               body_.points(phase, "col", 1, guard(), "        "), "      }\n    }\n");
  }

  const KernelIR& ir_;
  const Dialect& dialect_;
  const RenderOptions& options_;
  const Plan& plan_;
  BodyWriter body_;
  bool is_fold_ = false;
};

}  // namespace

RenderedKernel render(const KernelIR& original, const Dialect& dialect,
                      const RenderOptions& wanted) {
  RenderOptions options = wanted;
  if (dialect.cluster.empty()) options.cluster_groups = 1;
  TESSERA_ASSERT(verify(original).empty());
  const KernelIR ir = rounded_once(original);
  TESSERA_ASSERT(options.max_group_size > 0 &&
                 std::has_single_bit(unsigned(options.max_group_size)));
  TESSERA_ASSERT(!options.split || can_split(ir));
  TESSERA_ASSERT(options.parts == 0 || (options.parts > 1 && !options.operand_offsets));
  Plan plan = make_plan(ir, options);
  plan.reads_ahead = plan.reads_ahead && !dialect.prefetch.empty();
  RenderedKernel kernel;
  kernel.reads_ahead = plan.reads_ahead;
  kernel.entry = entry_name(ir.name);
  kernel.group_size = plan.group_size;
  kernel.cluster = plan.cluster;
  if (dialect.is_sized_by_launch) kernel.local_bytes = plan.row_bytes;
  std::string text;
  if (ir.is_map()) {
    kernel.per_group = int64_t{plan.group_size} * plan.width * std::max(plan.turns, 1);
    text = Renderer(ir, dialect, options, plan).map(kernel.entry);
  } else {
    kernel.per_group = plan.rows_per_group();
    text = Renderer(ir, dialect, options, plan).rows(kernel.entry);
  }
  if (options.split) {
    kernel.fold_entry = kernel.entry + "_fold";
    kernel.scratch_values = FoldWriter(ir, dialect, plan).scratch_values();
    text += "\n" + Renderer(ir, dialect, options, plan).fold(kernel.fold_entry);
  }
  if (options.parts > 0) {
    text = table_types(ir, BodyWriter(ir, dialect, plan), dialect, options) + "\n" + text;
  }
  kernel.source = prelude(text, dialect, options.narrow_index) + "\n" + text;
  return kernel;
}

}  // namespace tessera
